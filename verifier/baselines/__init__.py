"""What candidates are held against: torch and libraries, prepared in a process of their own."""
