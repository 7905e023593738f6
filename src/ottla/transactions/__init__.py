"""What belongs together: transactions as machines whose state is a log."""
