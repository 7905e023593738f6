"""What tests need and production never imports: a disk that loses what was not synced, and one that fails."""
