import json


def render(found):
    return "<pre>" + json.dumps(found, indent=1) + "</pre>"
