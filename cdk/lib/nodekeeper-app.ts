import { createRequire } from 'node:module';
import { App, type AppProps, Stack, Validations } from 'aws-cdk-lib';
import { InvalidPropsError } from './cluster-options.ts';
import type { NodekeeperClusterProps } from './cluster-props.ts';
import { clusterPropsFromContext } from './context.ts';
import { NodekeeperCluster } from './nodekeeper-cluster.ts';
import { misspeltSettings, unrecordedSettings } from './recorded-settings.ts';

export interface NodekeeperAppProps {
  readonly app?: AppProps;
  readonly cluster?: NodekeeperClusterProps;
  /** `context` of cdk.json. Absent: settings need not be recorded there. */
  readonly recorded?: Readonly<Record<string, unknown>>;
}

/**
 * The app that `cdk synth` runs: one stack with one cluster, no account or Region fixed, checked by the rules
 * AwsSolutions and Serverless of cdk-nag at synth. Missing props come from context (context.ts), the name of the stack
 * from `stackName`.
 */
export function nodekeeperApp(props: NodekeeperAppProps = {}): { readonly app: App; readonly stack: Stack } {
  const app = new App({ analyticsReporting: false, autoSynth: false, ...props.app });
  if (process.env['NODEKEEPER_CDK_NAG'] !== 'false') addChecks(app);
  const stackName = app.node.tryGetContext('stackName') as string | undefined;
  const stack = new Stack(app, 'Nodekeeper', {
    description: 'The Kubernetes node controller without a control plane',
    ...(stackName === undefined ? {} : { stackName }),
  });
  const names = ['stackName'];
  const read = (name: string): unknown => app.node.tryGetContext(name);
  const fromContext = clusterPropsFromContext((name) => {
    names.push(name);
    return read(name);
  });
  const misspelt = misspeltSettings(names, Object.keys(app.node.getAllContext() as object), read);
  const forgettable = props.recorded === undefined ? [] : unrecordedSettings(names, read, props.recorded);
  if (misspelt.length + forgettable.length > 0) throw new InvalidPropsError([...misspelt, ...forgettable]);
  new NodekeeperCluster(stack, 'Cluster', { outputPrefix: '', ...fromContext, ...props.cluster });
  return { app, stack };
}

/**
 * cdk-nag needs a fifth of the time of a synthesis. Local mode leaves it out by a variable of its own: a shell, a CI
 * job or a ~/.cdk.json without the CDK's validation must not deploy without these rules.
 */
function addChecks(app: App): void {
  const { AwsSolutionsChecks, ServerlessChecks } = createRequire(import.meta.url)(
    'cdk-nag',
  ) as typeof import('cdk-nag');
  Validations.of(app).addPlugins(new AwsSolutionsChecks(app), new ServerlessChecks(app));
}
