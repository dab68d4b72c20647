"""What every floor may use: files written whole, models on disk, progress, tables."""
