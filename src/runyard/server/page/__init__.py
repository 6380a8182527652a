"""The page's side of the server: the built app, who is logged in, and what guards their cookie."""
