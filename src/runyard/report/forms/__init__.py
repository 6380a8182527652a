"""The forms in which a report is written: text, HTML, Markdown, LaTeX."""
