locals {
  functions = jsondecode(file("${path.module}/functions.json"))

  # Files beside the code of the function "api". An absent name is no null.
  access_entries = jsonencode([
    for entry in var.access_entries : { for name, value in entry : name => value if value != null }
  ])
  instance_identity_key = var.instance_identity_public_key == null ? "" : replace(replace(var.instance_identity_public_key, "/-----[A-Z ]+-----/", ""), "/\\s/", "")
  api_files             = merge({ "access-entries.json" = local.access_entries }, var.instance_identity_public_key == null ? {} : { "instance-identity-key.txt" = local.instance_identity_key })
  api_files_hash        = sha256(jsonencode(local.api_files))

  # The key of a function's code changes with its content, which makes CloudFormation update the function.
  code_keys = {
    for name, hash in local.functions : name => join("", [
      var.code_prefix, name, "-", hash, name == "api" ? "-${local.api_files_hash}" : "", ".zip",
    ])
  }

  # Numbers that cannot be parameters.
  template = replace(
    replace(
      file("${path.module}/templates/${var.removal_policy}.json"),
      "\"{{HeartbeatsPerSecondMax}}\"", local.heartbeats_max,
    ),
    "\"{{HeartbeatsBurstMax}}\"", local.heartbeats_burst_max,
  )
  template_key = "${var.code_prefix}${var.removal_policy}-${sha256(local.template)}.json"

  bucket               = var.code_bucket == null ? aws_s3_bucket.code[0].id : data.aws_s3_bucket.code[0].id
  bucket_regional_name = var.code_bucket == null ? aws_s3_bucket.code[0].bucket_regional_domain_name : data.aws_s3_bucket.code[0].bucket_regional_domain_name
}

data "aws_s3_bucket" "code" {
  count  = var.code_bucket == null ? 0 : 1
  bucket = var.code_bucket
}

resource "aws_s3_bucket" "code" {
  count         = var.code_bucket == null ? 1 : 0
  bucket_prefix = "${substr(var.cluster_id, 0, 25)}-code-"
  force_destroy = true # It has nothing that this module does not contain.
  tags          = var.tags
}

resource "aws_s3_bucket_public_access_block" "code" {
  count                   = length(aws_s3_bucket.code)
  bucket                  = aws_s3_bucket.code[count.index].id
  block_public_acls       = true
  block_public_policy     = true
  ignore_public_acls      = true
  restrict_public_buckets = true
}

resource "aws_s3_bucket_server_side_encryption_configuration" "code" {
  count  = length(aws_s3_bucket.code)
  bucket = aws_s3_bucket.code[count.index].id

  rule {
    apply_server_side_encryption_by_default {
      sse_algorithm = "AES256"
    }
  }
}

resource "aws_s3_bucket_versioning" "code" {
  count  = length(aws_s3_bucket.code)
  bucket = aws_s3_bucket.code[count.index].id

  versioning_configuration {
    status = "Enabled"
  }
}

data "aws_iam_policy_document" "code" {
  count = length(aws_s3_bucket.code)

  statement {
    sid       = "TlsOnly"
    effect    = "Deny"
    actions   = ["s3:*"]
    resources = [aws_s3_bucket.code[count.index].arn, "${aws_s3_bucket.code[count.index].arn}/*"]

    principals {
      type        = "*"
      identifiers = ["*"]
    }

    condition {
      test     = "Bool"
      variable = "aws:SecureTransport"
      values   = ["false"]
    }
  }
}

resource "aws_s3_bucket_policy" "code" {
  count  = length(aws_s3_bucket.code)
  bucket = aws_s3_bucket.code[count.index].id
  policy = data.aws_iam_policy_document.code[count.index].json

  # A bucket takes one change of its access at a time.
  depends_on = [aws_s3_bucket_public_access_block.code]
}

data "archive_file" "function" {
  for_each    = local.functions
  type        = "zip"
  output_path = "${path.module}/.zips/${each.key}-${each.value}-${local.api_files_hash}.zip"

  dynamic "source" {
    for_each = fileset("${path.module}/functions/${each.key}", "*")

    content {
      filename = source.value
      content  = file("${path.module}/functions/${each.key}/${source.value}")
    }
  }

  dynamic "source" {
    for_each = each.key == "api" ? local.api_files : {}

    content {
      filename = source.key
      content  = source.value
    }
  }
}

resource "aws_s3_object" "function" {
  for_each = local.functions
  bucket   = local.bucket
  key      = local.code_keys[each.key]
  source   = data.archive_file.function[each.key].output_path

  # The former code stays until the stack no longer uses it: a failed update returns to it.
  lifecycle {
    create_before_destroy = true
  }

  depends_on = [
    aws_s3_bucket_policy.code,
    aws_s3_bucket_server_side_encryption_configuration.code,
    aws_s3_bucket_versioning.code,
  ]
}

# A template of more than 51,200 bytes is read from a bucket.
resource "aws_s3_object" "template" {
  bucket       = local.bucket
  key          = local.template_key
  content      = local.template
  content_type = "application/json"

  lifecycle {
    create_before_destroy = true
  }

  depends_on = [
    aws_s3_bucket_policy.code,
    aws_s3_bucket_server_side_encryption_configuration.code,
    aws_s3_bucket_versioning.code,
  ]
}

resource "aws_cloudformation_stack" "cluster" {
  name         = var.stack_name
  template_url = "https://${local.bucket_regional_name}/${aws_s3_object.template.key}"
  capabilities = ["CAPABILITY_IAM"]
  tags         = var.tags
  parameters   = merge(local.parameters, local.options, local.limits, local.units, local.reservations)

  lifecycle {
    precondition {
      condition     = length(local.faults) == 0
      error_message = join("\n", local.faults)
    }
  }

  timeouts {
    create = "60m"
    update = "60m"
    delete = "60m"
  }

  depends_on = [aws_s3_object.function]
}
