"""Worker processes: sessions on datasets, in processes of their own."""
