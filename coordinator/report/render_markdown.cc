// coordinator/report/render_markdown.cc
