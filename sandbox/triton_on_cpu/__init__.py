# SPDX-License-Identifier: Apache-2.0
"""What runs inside a jail for Triton candidates: the warm builder, and the interpreter's runner.

`start` puts these modules into an isolated interpreter under a name of their own; nothing else of
the package is there. Of all this the rest of the house imports `outside`, which starts it.
"""
