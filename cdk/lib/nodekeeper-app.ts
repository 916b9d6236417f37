import { App, type AppProps, Stack, Validations } from 'aws-cdk-lib';
import { AwsSolutionsChecks } from 'cdk-nag';
import { NodekeeperCluster, type NodekeeperClusterProps } from './nodekeeper-cluster.ts';

export interface NodekeeperAppProps {
  readonly app?: AppProps;
  readonly cluster?: NodekeeperClusterProps;
}

/**
 * The app that `cdk synth` runs: one stack with one cluster, no account or Region fixed, checked by the AwsSolutions
 * rules at synth. Context `policyFile` and `accessEntriesFile` name the files when the props do not.
 */
export function nodekeeperApp(props: NodekeeperAppProps = {}): { readonly app: App; readonly stack: Stack } {
  const app = new App({ analyticsReporting: false, autoSynth: false, ...props.app });
  Validations.of(app).addPlugins(new AwsSolutionsChecks(app));
  const stack = new Stack(app, 'Nodekeeper', { description: 'The Kubernetes node controller without a control plane' });
  const policyFile = app.node.tryGetContext('policyFile') as string | undefined;
  const accessEntriesFile = app.node.tryGetContext('accessEntriesFile') as string | undefined;
  new NodekeeperCluster(stack, 'Cluster', {
    ...(policyFile === undefined ? {} : { policyFile }),
    ...(accessEntriesFile === undefined ? {} : { accessEntriesFile }),
    ...props.cluster,
  });
  return { app, stack };
}
