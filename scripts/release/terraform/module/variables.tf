variable "stack_name" {
  description = "Name of the CloudFormation stack."
  type        = string
  default     = "Nodekeeper"
}

variable "cluster_id" {
  description = "Name of the cluster in logs, metrics and kubeconfigs: lower-case letters, digits and dashes."
  type        = string
  default     = "nodekeeper"

  validation {
    condition     = can(regex("^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$", var.cluster_id))
    error_message = "cluster_id must be lower-case letters, digits and dashes, 63 at most."
  }
}

variable "access_entries" {
  description = "Users with AWS credentials who may use the cluster: ARNs of IAM roles or users, with their groups (nodekeeper:admins, nodekeeper:viewers)."
  type = list(object({
    arn      = string
    username = optional(string)
    groups   = list(string)
  }))
  default = []

  validation {
    condition     = alltrue([for entry in var.access_entries : can(regex("^arn:(aws|aws-cn|aws-us-gov):iam::\\d{12}:(role|user)/([!-~]+/)?[\\w+=,.@-]{1,64}$", entry.arn))])
    error_message = "access_entries[*].arn must be the ARN of an IAM role or user."
  }

  validation {
    condition     = length(distinct([for entry in var.access_entries : replace(entry.arn, "/(role|user)/([!-~]+/)?/", "$1/")])) == length(var.access_entries)
    error_message = "access_entries[*].arn must not name a role or user twice."
  }

  validation {
    condition = alltrue([
      for entry in var.access_entries : entry.username == null ? true : entry.username != "" && !startswith(entry.username, "system:") &&
      !can(regex("{{", replace(entry.username, "/{{(SessionName|AccountID)}}/", "")))
    ])
    error_message = "access_entries[*].username must not be empty nor begin with system:, and may hold {{SessionName}} and {{AccountID}} only."
  }

  validation {
    condition     = alltrue([for entry in var.access_entries : length(entry.groups) >= 1 && length(entry.groups) <= 10 && alltrue([for group in entry.groups : !contains(["", "system:nodes", "system:bootstrappers", "nodekeeper:simulated-fleet", "nodekeeper:probes"], group)])])
    error_message = "access_entries[*].groups must name 1 to 10 groups, and none of machines: system:nodes, system:bootstrappers."
  }
}

variable "static_tokens" {
  description = "Sign-in without IAM, for emergencies: hashes of tokens, with user and groups. Only hashes are stored."
  type = list(object({
    sha256 = string
    user   = string
    groups = list(string)
  }))
  default   = []
  sensitive = true

  validation {
    condition     = length(jsonencode(var.static_tokens)) <= 640
    error_message = "static_tokens must be at most 640 characters as JSON."
  }
}

variable "nodes_max" {
  description = "Nodes that the cluster may have. The request limits and reservations follow from it. Null: those of capacity, else 1000."
  type        = number
  default     = null

  validation {
    condition     = var.nodes_max == null ? true : var.nodes_max >= 1 && var.nodes_max <= 1000000 && floor(var.nodes_max) == var.nodes_max
    error_message = "nodes_max must be a whole number from 1 to 1000000."
  }
}

variable "capacity" {
  description = "Prepares the tables for a number of nodes: { provisioned_nodes = 5000 } pays per hour, with autoscaling; { warm_for_nodes = 5000 } pays per request. Null: per request, not warmed."
  type = object({
    provisioned_nodes = optional(number)
    warm_for_nodes    = optional(number)
  })
  default = null

  validation {
    condition     = var.capacity == null ? true : (var.capacity.provisioned_nodes == null) != (var.capacity.warm_for_nodes == null)
    error_message = "capacity must have either provisioned_nodes or warm_for_nodes."
  }

  validation {
    condition = var.capacity == null ? true : alltrue([
      for nodes in [var.capacity.provisioned_nodes, var.capacity.warm_for_nodes] :
      nodes == null ? true : nodes >= 1 && nodes <= 1000000 && floor(nodes) == nodes
    ])
    error_message = "capacity.provisioned_nodes and capacity.warm_for_nodes must be a whole number from 1 to 1000000."
  }
}

variable "removal_policy" {
  description = "What happens to the tables when the stack is deleted: retain or destroy."
  type        = string
  default     = "retain"

  validation {
    condition     = contains(["retain", "destroy"], var.removal_policy)
    error_message = "removal_policy must be retain or destroy."
  }
}

variable "deletion_protection" {
  description = "Whether DynamoDB refuses to delete the tables."
  type        = bool
  default     = true
}

variable "point_in_time_recovery_days" {
  description = "Point-in-time recovery window of the tables, 1 to 35 days; 0: none. Null: DynamoDB's maximum."
  type        = number
  default     = null

  validation {
    condition     = var.point_in_time_recovery_days == null ? true : var.point_in_time_recovery_days >= 0 && var.point_in_time_recovery_days <= 35 && floor(var.point_in_time_recovery_days) == var.point_in_time_recovery_days
    error_message = "point_in_time_recovery_days must be a whole number from 0 to 35."
  }
}

variable "restored_tables" {
  description = "Tables from a restore, used instead of those of the stack, which are kept: jsondecode(file(\"restored.json\"))."
  type = object({
    health  = object({ tableArn = string, streamArn = string })
    objects = object({ tableArn = string, streamArn = string })
    control = object({ tableArn = string })
  })
  default = null

  validation {
    condition = var.restored_tables == null ? true : alltrue([
      for table in [var.restored_tables.health, var.restored_tables.objects, var.restored_tables.control] :
      can(regex("^arn:aws[a-z-]*:dynamodb:[a-z0-9-]+:\\d{12}:table/[A-Za-z0-9_.-]{3,255}$", table.tableArn))
    ])
    error_message = "restored_tables.*.tableArn must be the ARN of a table."
  }

  validation {
    condition     = var.restored_tables == null ? true : length(distinct([var.restored_tables.health.tableArn, var.restored_tables.objects.tableArn, var.restored_tables.control.tableArn])) == 3
    error_message = "restored_tables.*.tableArn must not be used twice."
  }

  validation {
    condition = var.restored_tables == null ? true : alltrue([
      for table in [var.restored_tables.health, var.restored_tables.objects] :
      startswith(table.streamArn, "${table.tableArn}/stream/") && can(regex("/stream/[0-9T:.-]+$", table.streamArn))
    ])
    error_message = "restored_tables.*.streamArn must be the ARN of a stream of that table."
  }
}

variable "log_retention_days" {
  description = "Retention of the functions' logs. The audit log is kept for a year."
  type        = number
  default     = 30

  validation {
    condition     = contains([1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288, 3653], var.log_retention_days)
    error_message = "log_retention_days must be a retention period of CloudWatch Logs: 1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288, 3653."
  }
}

variable "custom_domain" {
  description = "A custom domain name of the endpoint, and its ACM certificate in the Region. Create its DNS record, which points to the output domain_target."
  type        = object({ domain_name = string, certificate_arn = string })
  default     = null

  validation {
    condition     = var.custom_domain == null ? true : length(var.custom_domain.domain_name) <= 253 && can(regex("^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\\.)+[a-z0-9-]{2,63}$", var.custom_domain.domain_name))
    error_message = "custom_domain.domain_name must be a DNS name in lower case, such as nodes.example.com."
  }

  validation {
    condition     = var.custom_domain == null ? true : can(regex("^arn:aws[a-z-]*:acm:[a-z0-9-]+:\\d{12}:certificate/[0-9a-f-]{36}$", var.custom_domain.certificate_arn))
    error_message = "custom_domain.certificate_arn must be the ARN of an ACM certificate."
  }
}

variable "requests_per_second_max" {
  description = "Heartbeats per second that the HTTP API accepts. Other requests have a limit of the same size, in a large cluster less. Null: twice the heartbeats of nodes_max, at least 100."
  type        = number
  default     = null

  validation {
    condition     = var.requests_per_second_max == null ? true : var.requests_per_second_max >= 1 && var.requests_per_second_max <= 1000000 && floor(var.requests_per_second_max) == var.requests_per_second_max
    error_message = "requests_per_second_max must be a whole number from 1 to 1000000."
  }
}

variable "burst_requests_max" {
  description = "Requests that may arrive at once. Null: twice requests_per_second_max."
  type        = number
  default     = null

  validation {
    condition     = var.burst_requests_max == null ? true : var.burst_requests_max >= 1 && var.burst_requests_max <= 1000000 && floor(var.burst_requests_max) == var.burst_requests_max
    error_message = "burst_requests_max must be a whole number from 1 to 1000000."
  }
}

variable "account_requests_per_second_max" {
  description = "Requests per second that API Gateway accepts for the account and Region: its quota \"Throttle rate\"."
  type        = number
  default     = 10000

  validation {
    condition     = var.account_requests_per_second_max >= 1 && var.account_requests_per_second_max <= 10000000 && floor(var.account_requests_per_second_max) == var.account_requests_per_second_max
    error_message = "account_requests_per_second_max must be a whole number from 1 to 10000000."
  }
}

variable "policy" {
  description = "Fields of the policy that differ from their default, such as { nodeMonitorGracePeriodSeconds = 60 }. README.md lists them."
  type        = any
  default     = {}

  validation {
    condition     = can(keys(var.policy))
    error_message = "policy must be an object of policy fields."
  }
}

variable "account_concurrency" {
  description = "Concurrent executions that Lambda allows in the account and Region. A new account may have 10: then nothing is reserved."
  type        = number
  default     = 1000

  validation {
    condition     = var.account_concurrency >= 1 && var.account_concurrency <= 1000000 && floor(var.account_concurrency) == var.account_concurrency
    error_message = "account_concurrency must be a whole number from 1 to 1000000."
  }
}

variable "reserved_concurrency" {
  description = "Executions to reserve, by the name of the function, in place of those that account_concurrency results in."
  type        = map(number)
  default     = null

  validation {
    condition     = var.reserved_concurrency == null ? true : alltrue([for count in values(var.reserved_concurrency) : count >= 1 && floor(count) == count])
    error_message = "reserved_concurrency.* must be a whole number from 1: 0 would stop the function."
  }
}

variable "mark_concurrency_max" {
  description = "Executions that mark nodes at once when hundreds fail together. Null: the reservation of node-marker, else a fifth of account_concurrency, 2 to 32."
  type        = number
  default     = null

  validation {
    condition     = var.mark_concurrency_max == null ? true : var.mark_concurrency_max >= 2 && var.mark_concurrency_max <= 1000 && floor(var.mark_concurrency_max) == var.mark_concurrency_max
    error_message = "mark_concurrency_max must be a whole number from 2 to 1000."
  }
}

variable "permissions_boundary_arn" {
  description = "IAM policy that limits every role of the cluster."
  type        = string
  default     = null

  validation {
    condition     = var.permissions_boundary_arn == null ? true : can(regex("^arn:aws[a-z-]*:iam::(\\d{12}|aws):policy/[\\w+=,.@/-]{1,512}$", var.permissions_boundary_arn))
    error_message = "permissions_boundary_arn must be the ARN of an IAM policy."
  }
}

variable "network" {
  description = "Private subnets from which the functions call AWS; ipv6: also over IPv6. Watches are then answered by polls. Null: Lambda's own network."
  type = object({
    subnet_ids         = list(string)
    security_group_ids = list(string)
    ipv6               = optional(bool, false)
  })
  default = null

  validation {
    condition     = var.network == null ? true : length(var.network.subnet_ids) > 0 && alltrue([for id in var.network.subnet_ids : can(regex("^subnet-[0-9a-f]{8,17}$", id))])
    error_message = "network.subnet_ids must be ids of subnets, one at least."
  }

  validation {
    condition     = var.network == null ? true : length(var.network.security_group_ids) > 0 && alltrue([for id in var.network.security_group_ids : can(regex("^sg-[0-9a-f]{8,17}$", id))])
    error_message = "network.security_group_ids must be ids of security groups, one at least."
  }
}

variable "customer_managed_key" {
  description = "Whether a KMS key of the account, which the stack creates, encrypts tables, queues and logs."
  type        = bool
  default     = false
}

variable "kms_key_arn" {
  description = "An existing KMS key to use instead. Its policy must allow CloudWatch Logs to use it."
  type        = string
  default     = null

  validation {
    condition     = var.kms_key_arn == null ? true : can(regex("^arn:aws[a-z-]*:kms:[a-z0-9-]+:\\d{12}:key/[A-Za-z0-9-]{1,128}$", var.kms_key_arn))
    error_message = "kms_key_arn must be the ARN of a KMS key, not of an alias."
  }
}

variable "alarm_topic_arn" {
  description = "SNS topic that is notified when the cluster needs attention, and when that is over."
  type        = string
  default     = null

  validation {
    condition     = var.alarm_topic_arn == null ? true : can(regex("^arn:aws[a-z-]*:sns:[a-z0-9-]+:\\d{12}:[A-Za-z0-9_-]{1,256}$", var.alarm_topic_arn))
    error_message = "alarm_topic_arn must be the ARN of an SNS topic that is not FIFO."
  }
}

variable "alarm_email" {
  description = "E-mail address to notify instead. The stack creates a topic, and AWS asks the address to confirm."
  type        = string
  default     = null

  validation {
    condition     = var.alarm_email == null ? true : can(regex("^[^\\s@]{1,64}@[^\\s@]+\\.[^\\s@]+$", var.alarm_email))
    error_message = "alarm_email must be an e-mail address."
  }
}

variable "runbook_base_url" {
  description = "Address at which the repository can be read: prefix of the runbook in the description of each alarm."
  type        = string
  default     = null
}

variable "dashboard" {
  description = "Whether the cluster has a dashboard in CloudWatch."
  type        = bool
  default     = true
}

variable "instance_identity_public_key" {
  description = "Public key with which EC2 signs identity documents in the Region, as PEM: openssl x509 -noout -pubkey of the certificate \"RSA-2048\". Instances of this account and Region then enrol themselves."
  type        = string
  default     = null

  validation {
    condition     = var.instance_identity_public_key == null ? true : can(regex("^MII[A-Za-z0-9+/]{2}[DTjz]ANBgkqhkiG9w0BAQEFAAOC[A-Za-z0-9+/]{364,}=*$", replace(replace(var.instance_identity_public_key, "/-----(BEGIN|END) PUBLIC KEY-----/", ""), "/\\s/", "")))
    error_message = "instance_identity_public_key must be an RSA public key of 2048 bits or more, as PEM."
  }
}

variable "code_bucket" {
  description = "Bucket of this Region for the code and the template. Null: the module creates one, private, encrypted and versioned."
  type        = string
  default     = null
}

variable "code_prefix" {
  description = "Prefix of the keys in the bucket."
  type        = string
  default     = "nodekeeper/"

  validation {
    condition     = can(regex("^([A-Za-z0-9._-]+/)*$", var.code_prefix))
    error_message = "code_prefix must be empty, or names that each end with a slash."
  }
}

variable "tags" {
  description = "Tags of the stack, which CloudFormation adds to its resources, and of the bucket."
  type        = map(string)
  default     = {}

  validation {
    condition     = length(var.tags) <= 48 && alltrue([for name, value in var.tags : can(regex("^.{1,128}$", name)) && !startswith(name, "aws:") && length(value) <= 256])
    error_message = "tags must be 48 at most, with names of 1 to 128 characters that do not begin with aws:, and values of 256 characters at most."
  }
}
