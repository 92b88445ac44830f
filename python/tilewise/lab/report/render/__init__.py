"""One renderer a medium for tables and pages: terminal, HTML, and files of CSV, Markdown, JSON, SVG, PNG."""
