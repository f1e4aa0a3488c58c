// coordinator/report/render_json.cc
