import { CfnOutput, Stack } from 'aws-cdk-lib';
import type { ITable } from 'aws-cdk-lib/aws-dynamodb';
import type { Construct } from 'constructs';

interface Outputs extends Construct {
  readonly endpoint: string;
  readonly apiUrl: string | undefined;
  readonly clusterId: string;
  readonly eventBusName: string;
  readonly dashboardUrl: string | undefined;
  readonly domainTarget: string | undefined;
  readonly tables: Readonly<Record<'health' | 'objects' | 'control', ITable>>;
}

/** Outputs have known names, because the CLI and scripts read them. */
export function createOutputs(cluster: Outputs, prefix: string): void {
  const output = (name: string, value: string, description: string): void =>
    new CfnOutput(cluster, `${name}Output`, { value, description }).overrideLogicalId(`${prefix}${name}`);
  output('EventBusName', cluster.eventBusName, 'Event bus of the cluster events (docs/events)');
  if (cluster.dashboardUrl !== undefined) {
    output('DashboardUrl', cluster.dashboardUrl, 'Dashboard of the cluster');
  }
  output('Endpoint', cluster.endpoint, 'Server URL for kubeconfigs and agents');
  if (cluster.apiUrl !== undefined) {
    output('ApiUrl', cluster.apiUrl, 'The same for clients that ask often (policy field apiUrl)');
  }
  output('ClusterId', cluster.clusterId, 'Name of this cluster');
  const { region, stackName } = Stack.of(cluster);
  output('Region', region, 'Region of the cluster');
  // `nodekeeper serve --store dynamodb` reads them. Restored tables are no resources of the stack.
  output('HealthTable', cluster.tables.health.tableName, 'Table of heartbeats');
  output('ObjectsTable', cluster.tables.objects.tableName, 'Table of objects');
  output('ControlTable', cluster.tables.control.tableName, 'Table of the controllers');
  const which = prefix === '' ? '' : ` --cluster-id ${cluster.clusterId}`;
  const command = `npx nodekeeper kubeconfig --stack ${stackName}${which} --region ${region}`;
  output('KubeconfigCommand', command, 'Writes a kubeconfig for users with AWS credentials');
  if (cluster.domainTarget !== undefined) {
    output('DomainTarget', cluster.domainTarget, 'Target of the DNS record of the custom domain');
  }
}

/** Names of outputs and parameters consist of letters and digits. */
export const pathInStack = (cluster: Construct): string => {
  const { scopes } = cluster.node;
  const ids = scopes.slice(scopes.indexOf(Stack.of(cluster)) + 1).map(({ node }) => node.id);
  return ids.join('').replaceAll(/[^A-Za-z0-9]/g, '');
};
