# SPDX-License-Identifier: Apache-2.0
"""Several kernels for one problem and a dispatcher between them, where no single one is best."""
