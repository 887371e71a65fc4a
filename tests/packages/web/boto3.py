"""Lists the files of a bucket from an answer of its own stub, and signs an address."""

import boto3
from botocore.stub import Stubber

s3 = boto3.client("s3", "eu-north-1", aws_access_key_id="a", aws_secret_access_key="b")
with Stubber(s3) as stub:
    stub.add_response("list_objects_v2", {"Contents": [{"Key": "x.csv"}]}, {"Bucket": "c"})
    assert s3.list_objects_v2(Bucket="c")["Contents"][0]["Key"] == "x.csv"
assert "Signature=" in s3.generate_presigned_url("get_object", {"Bucket": "c", "Key": "x"})
