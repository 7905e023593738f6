"""Who reads what, and how far: consumer groups as machines whose state is a log."""
