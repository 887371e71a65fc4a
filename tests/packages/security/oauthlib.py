"""Makes the address at which a user allows access."""

from oauthlib.oauth2 import WebApplicationClient

url = WebApplicationClient("me").prepare_request_uri("https://a/b", scope=["mail"], state="x")
assert url == "https://a/b?response_type=code&client_id=me&scope=mail&state=x"
