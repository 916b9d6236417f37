/**
 * nodekeeper kubeconfig [--stack NAME] [--cluster-id ID] [--region REGION] [--profile PROFILE] [--alias NAME]
 *                       [--file PATH|-]
 *
 * Reads the outputs of a deployed stack and adds the cluster to a kubeconfig. kubectl then runs `nodekeeper token` of
 * this installation, by absolute path. So it works in any directory and never downloads from a registry.
 */
import { homedir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { DEFAULT_STACK, isStackName, regionOfEnvironment } from '../shared/aws/cloudformation/stack-name.ts';
import {
  describeStack,
  outputPrefixOf,
  StackError,
  type StackRequest,
} from '../shared/aws/cloudformation/stack-outputs.ts';
import { type FindCredentials, fromAws, regionOfProfile, requireCredentials, requireRegion } from './aws-account.ts';
import { CommandError, type CommandIo } from './command.ts';
import { firstKubeconfig } from './kubeconfig.ts';
import { changeKubeconfigFile, type KubeconfigEntry, mergedKubeconfig } from './merge-kubeconfig.ts';

export const KUBECONFIG_USAGE =
  'nodekeeper kubeconfig [--stack NAME] [--cluster-id ID] [--region REGION] [--profile PROFILE] [--alias NAME] [--file PATH|-]';

const LAUNCHER = fileURLToPath(new URL('./bin/nodekeeper.mjs', import.meta.url));

export async function kubeconfigCommand(
  args: readonly string[],
  { environment, print }: CommandIo,
  find: FindCredentials = fromAws,
): Promise<void> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      stack: { type: 'string' },
      'cluster-id': { type: 'string' },
      region: { type: 'string' },
      profile: { type: 'string' },
      alias: { type: 'string' },
      file: { type: 'string' },
    },
  });
  const stackName = values.stack ?? DEFAULT_STACK;
  if (!isStackName(stackName)) {
    throw new CommandError(`${JSON.stringify(stackName)} is not a valid stack name`, KUBECONFIG_USAGE);
  }
  const profile = values.profile ?? environment['AWS_PROFILE'];
  const region = requireRegion(
    values.region ?? regionOfEnvironment(environment) ?? regionOfProfile(profile, environment),
  );
  const credentials = await requireCredentials(profile, find);
  const endpoint = environment['AWS_ENDPOINT_URL_CLOUDFORMATION'];
  const { status, outputs, prefix } = await outputsOf(
    { stackName, region, credentials, endpoint },
    values['cluster-id'],
  );
  const server = outputs.get(`${prefix}Endpoint`);
  const clusterId = outputs.get(`${prefix}ClusterId`);
  if (server === undefined || clusterId === undefined) throw withoutOutputs(stackName, status);

  const name = `${clusterId}.${region}.nodekeeper`;
  const entry: KubeconfigEntry = {
    name,
    contextName: values.alias ?? name,
    server,
    exec: {
      command: 'node',
      args: [
        LAUNCHER,
        'token',
        ...['--cluster-id', clusterId],
        ...['--region', region],
        // Only an explicit profile: AWS_PROFILE may have another value when kubectl runs.
        ...(values.profile === undefined ? [] : ['--profile', values.profile]),
      ],
    },
  };
  if (values.file === '-') {
    print(mergedKubeconfig('', entry).trimEnd());
    return;
  }
  const path = values.file ?? defaultFile(environment);
  changeKubeconfigFile(path, (text) => mergedKubeconfig(text, entry));
  print(`context ${entry.contextName} in ${path}`);
}

/** The default of kubectl: the first of $KUBECONFIG, else ~/.kube/config. */
const defaultFile = (environment: CommandIo['environment']): string =>
  firstKubeconfig(environment) ?? join(environment['HOME'] ?? homedir(), '.kube', 'config');

/** @throws CommandError */
async function outputsOf(request: StackRequest, clusterId: string | undefined) {
  try {
    const stack = await describeStack(request);
    return { ...stack, prefix: outputPrefixOf(stack.outputs, clusterId, request.stackName) };
  } catch (cause) {
    throw cause instanceof StackError ? new CommandError(cause.message, cause.next, { cause }) : cause;
  }
}

function withoutOutputs(stackName: string, status: string): CommandError {
  if (status.endsWith('_IN_PROGRESS')) {
    return new CommandError(
      `the stack ${stackName} is not deployed yet: ${status}`,
      'wait until the deployment is complete',
    );
  }
  if (/FAILED|ROLLBACK_COMPLETE/.test(status) && !status.startsWith('UPDATE')) {
    return new CommandError(
      `the stack ${stackName} failed: ${status}`,
      'check its events in CloudFormation, then deploy again',
    );
  }
  return new CommandError(
    `the stack ${stackName} has no outputs Endpoint and ClusterId`,
    'pass --stack if this is another stack; deploy again if it is of a version without these outputs',
  );
}
