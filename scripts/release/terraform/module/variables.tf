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
  description = "Nodes that the cluster may have: 1000 or 10000. The request limits and reservations follow from it."
  type        = number
  default     = 1000

  validation {
    condition     = contains([1000, 10000], var.nodes_max)
    error_message = "nodes_max must be 1000 or 10000."
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
    condition     = var.account_concurrency >= 1 && floor(var.account_concurrency) == var.account_concurrency
    error_message = "account_concurrency must be a whole number from 1."
  }
}

variable "permissions_boundary_arn" {
  description = "IAM policy that limits every role of the cluster."
  type        = string
  default     = null
}

variable "network" {
  description = "Private subnets from which the functions call AWS. Watches are then answered by polls. Null: Lambda's own network."
  type = object({
    subnet_ids         = list(string)
    security_group_ids = list(string)
  })
  default = null

  validation {
    condition     = var.network == null ? true : length(var.network.subnet_ids) > 0 && length(var.network.security_group_ids) > 0
    error_message = "network must have subnets and security groups."
  }
}

variable "customer_managed_key" {
  description = "Whether a KMS key of the account, which the stack creates, encrypts tables, queues and logs."
  type        = bool
  default     = false
}

variable "alarm_topic_arn" {
  description = "SNS topic that is notified when the cluster needs attention, and when that is over."
  type        = string
  default     = null
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
}
