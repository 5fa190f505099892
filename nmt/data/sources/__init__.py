"""Where text comes from: a name, a file or a URL in, raw pairs out."""
