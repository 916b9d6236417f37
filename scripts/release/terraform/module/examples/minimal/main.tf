# A cluster whose administrators sign in with one IAM role.
module "nodekeeper" {
  source = "../.."

  access_entries = [
    {
      arn    = "arn:aws:iam::111122223333:role/Team"
      groups = ["nodekeeper:admins"]
    },
  ]
}

output "kubeconfig_command" {
  value = module.nodekeeper.kubeconfig_command
}
