locals {
  functions = jsondecode(file("${path.module}/functions.json"))

  # As the function "api" reads them: an absent name is no null.
  access_entries = jsonencode([
    for entry in var.access_entries : { for name, value in entry : name => value if value != null }
  ])
  access_entries_hash = sha256(local.access_entries)

  # The key of a function's code changes with its content, which makes CloudFormation update the function.
  code_keys = {
    for name, hash in local.functions : name => join("", [
      var.code_prefix, name, "-", hash, name == "api" ? "-${local.access_entries_hash}" : "", ".zip",
    ])
  }

  template = join("-", [
    var.nodes_max,
    var.network == null ? "public" : "vpc",
    var.customer_managed_key ? "key" : "aws",
    var.alarm_topic_arn == null ? "silent" : "topic",
  ])
  template_file = "${path.module}/templates/${local.template}.json"
  template_key  = "${var.code_prefix}${local.template}-${filesha256(local.template_file)}.json"

  bucket               = var.code_bucket == null ? aws_s3_bucket.code[0].id : data.aws_s3_bucket.code[0].id
  bucket_regional_name = var.code_bucket == null ? aws_s3_bucket.code[0].bucket_regional_domain_name : data.aws_s3_bucket.code[0].bucket_regional_domain_name

  settings = jsondecode(file("${path.module}/settings.json"))

  # A number in quotes is a number.
  given_policy = {
    for name, value in var.policy : name => try(tonumber(value), tobool(value), value) if value != null
  }
  policy_faults = [
    for name, value in local.given_policy :
    "policy.${name} ${try(local.settings.policyInputs[name].rule, "is no input of this module")}: ${jsonencode(value)}"
    if !try(contains(local.settings.policyInputs[name].values, value), false) && !try(
      value >= local.settings.policyInputs[name].least && value <= local.settings.policyInputs[name].most &&
      (floor(value) == value || !local.settings.policyInputs[name].isWhole),
      false,
    )
  ]
  policy        = merge(var.network == null ? {} : { watchMode = "longPoll" }, local.given_policy)
  grace_seconds = try(tonumber(local.given_policy.nodeMonitorGracePeriodSeconds), local.settings.gracePeriodSeconds)

  # The parameters of each template, and those of an option.
  parameters = {
    ClusterId         = var.cluster_id
    StaticTokens      = jsonencode(var.static_tokens)
    CodeBucket        = local.bucket
    CodePrefix        = var.code_prefix
    AccessEntriesHash = local.access_entries_hash
    Policy            = jsonencode(local.policy)
    DetectionSeconds  = local.grace_seconds + local.settings.detectionSeconds - local.settings.gracePeriodSeconds

    ReserveExecutions = var.account_concurrency >= local.settings.reservingConcurrency[tostring(var.nodes_max)]
    MarkConcurrencyMax = max(local.settings.markConcurrency.least, min(
      local.settings.markConcurrency.most,
      floor(var.account_concurrency * local.settings.markConcurrency.share),
    ))
    PermissionsBoundaryArn = var.permissions_boundary_arn == null ? "" : var.permissions_boundary_arn
  }
  network_parameters = {
    SubnetIds        = var.network == null ? "" : join(",", var.network.subnet_ids)
    SecurityGroupIds = var.network == null ? "" : join(",", var.network.security_group_ids)
  }
  alarm_parameters = {
    AlarmTopicArn = var.alarm_topic_arn == null ? "" : var.alarm_topic_arn
  }
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
  output_path = "${path.module}/.zips/${each.key}-${each.value}-${local.access_entries_hash}.zip"

  dynamic "source" {
    for_each = fileset("${path.module}/functions/${each.key}", "*")

    content {
      filename = source.value
      content  = file("${path.module}/functions/${each.key}/${source.value}")
    }
  }

  dynamic "source" {
    for_each = each.key == "api" ? [local.access_entries] : []

    content {
      filename = "access-entries.json"
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
  source       = local.template_file
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
  parameters = merge(
    local.parameters,
    var.network == null ? {} : local.network_parameters,
    var.alarm_topic_arn == null ? {} : local.alarm_parameters,
  )

  lifecycle {
    precondition {
      condition     = length(local.policy_faults) == 0
      error_message = join("\n", local.policy_faults)
    }
  }

  timeouts {
    create = "60m"
    update = "60m"
    delete = "60m"
  }

  depends_on = [aws_s3_object.function]
}
