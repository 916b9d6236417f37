# Functions in private subnets, a key of the account, alarms to a topic, code in a bucket that exists.
variable "subnet_ids" {
  type = list(string)
}

variable "security_group_ids" {
  type = list(string)
}

variable "code_bucket" {
  type = string
}

resource "aws_sns_topic" "alarms" {
  name = "nodekeeper-alarms"
}

module "nodekeeper" {
  source = "../.."

  stack_name           = "EdgeNodes"
  cluster_id           = "edge"
  nodes_max            = 10000
  customer_managed_key = true
  alarm_topic_arn      = aws_sns_topic.alarms.arn
  code_bucket          = var.code_bucket
  tags                 = { team = "edge" }

  network = {
    subnet_ids         = var.subnet_ids
    security_group_ids = var.security_group_ids
  }

  access_entries = [
    {
      arn      = "arn:aws:iam::111122223333:role/Team"
      username = "team"
      groups   = ["nodekeeper:admins"]
    },
  ]
}

output "endpoint" {
  value = module.nodekeeper.endpoint
}
