output "endpoint" {
  description = "Server URL for kubeconfigs and agents."
  value       = aws_cloudformation_stack.cluster.outputs["Endpoint"]
}

output "api_url" {
  description = "The same for clients that ask often. Null without the policy field apiUrl."
  value       = try(aws_cloudformation_stack.cluster.outputs["ApiUrl"], null)
}

output "domain_target" {
  description = "Target of the DNS record of the custom domain. Null without one."
  value       = try(aws_cloudformation_stack.cluster.outputs["DomainTarget"], null)
}

output "cluster_id" {
  description = "Name of the cluster."
  value       = aws_cloudformation_stack.cluster.outputs["ClusterId"]
}

output "region" {
  description = "Region of the cluster."
  value       = aws_cloudformation_stack.cluster.outputs["Region"]
}

output "kubeconfig_command" {
  description = "Writes a kubeconfig for users with AWS credentials."
  value       = aws_cloudformation_stack.cluster.outputs["KubeconfigCommand"]
}

output "event_bus_name" {
  description = "Event bus of the cluster events."
  value       = aws_cloudformation_stack.cluster.outputs["EventBusName"]
}

output "dashboard_url" {
  description = "Dashboard of the cluster. Null without one."
  value       = try(aws_cloudformation_stack.cluster.outputs["DashboardUrl"], null)
}

output "health_table" {
  description = "Table of heartbeats."
  value       = aws_cloudformation_stack.cluster.outputs["HealthTable"]
}

output "objects_table" {
  description = "Table of objects."
  value       = aws_cloudformation_stack.cluster.outputs["ObjectsTable"]
}

output "control_table" {
  description = "Table of the controllers."
  value       = aws_cloudformation_stack.cluster.outputs["ControlTable"]
}

output "stack_id" {
  description = "ARN of the stack."
  value       = aws_cloudformation_stack.cluster.id
}
