/**
 * nodekeeper token --cluster-id ID [--region REGION] [--profile PROFILE]
 *
 * The exec plugin of kubectl: prints an ExecCredential (client.authentication.k8s.io). Credentials come from the
 * sources that the AWS CLI uses.
 */
import { parseArgs } from 'node:util';
import { regionOfEnvironment } from '../shared/aws/cloudformation/stack-name.ts';
import { rfc3339 } from '../shared/kubernetes/rfc3339.ts';
import { type FindCredentials, fromAws, requireCredentials, requireRegion } from './aws-account.ts';
import { callerIdentityToken } from './caller-identity.ts';
import { CommandError, type CommandIo } from './command.ts';

export const TOKEN_USAGE = 'nodekeeper token --cluster-id ID [--region REGION] [--profile PROFILE]';
const API_VERSIONS = ['client.authentication.k8s.io/v1', 'client.authentication.k8s.io/v1beta1'];

export async function tokenCommand(
  args: readonly string[],
  { environment, nowMs, print }: CommandIo,
  find: FindCredentials = fromAws,
): Promise<void> {
  const { values } = parseArgs({
    args: [...args],
    options: { 'cluster-id': { type: 'string' }, region: { type: 'string' }, profile: { type: 'string' } },
  });
  const clusterId = values['cluster-id'];
  if (clusterId === undefined || clusterId === '') throw new CommandError('--cluster-id is missing', TOKEN_USAGE);
  const region = requireRegion(values.region ?? regionOfEnvironment(environment));
  const credentials = await requireCredentials(values.profile ?? environment['AWS_PROFILE'], find);
  const { token, expiresAtMs } = await callerIdentityToken({ credentials, clusterId, region, nowMs });
  print(
    JSON.stringify({
      kind: 'ExecCredential',
      apiVersion: requestedVersion(environment['KUBERNETES_EXEC_INFO']),
      spec: {},
      status: { expirationTimestamp: rfc3339(expiresAtMs), token },
    }),
  );
}

/** The apiVersion that kubectl requested, or the newest when it requested none. */
function requestedVersion(execInfo: string | undefined): string {
  try {
    const requested = (JSON.parse(execInfo ?? '{}') as { apiVersion?: unknown }).apiVersion;
    return API_VERSIONS.find((version) => version === requested) ?? (API_VERSIONS[0] as string);
  } catch {
    return API_VERSIONS[0] as string;
  }
}
