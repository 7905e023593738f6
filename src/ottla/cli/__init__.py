"""The command line. A command is a few lines here and its work elsewhere, imported when it runs."""
