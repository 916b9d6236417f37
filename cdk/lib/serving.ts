import { FunctionUrlAuthType, type IFunction } from 'aws-cdk-lib/aws-lambda';
import type { Construct } from 'constructs';
import { apiManifest } from '../../functions/api/manifest.ts';
import type { FunctionName } from '../../functions/function-list.ts';
import { heartbeatManifest } from '../../functions/heartbeat/manifest.ts';
import { watchManifest } from '../../functions/watch/manifest.ts';
import { ACCESS_ENTRIES_FILE } from '../../shared/config/access-entries.ts';
import { AuditLog } from './audit-log.ts';
import { requestLimits } from './cluster-options.ts';
import type { NodekeeperClusterProps } from './cluster-props.ts';
import { accessEntriesOf } from './cluster-props.ts';
import { FrontDoor } from './http-api.ts';
import { INSTANCE_IDENTITY_KEY_FILE, readInstanceIdentityKey } from './instance-identity-key.ts';
import { type FunctionSurroundings, ManifestFunction, type VariableValues } from './manifest-function.ts';
import { Watch } from './watch.ts';

export interface Serving {
  readonly frontDoor: FrontDoor;
  readonly heartbeatUrl: string | undefined;
  readonly apiUrl: string | undefined;
  readonly functions: readonly [FunctionName, IFunction][];
}

/** The functions that answer requests, and the HTTP API that calls them. */
export function createServing(
  scope: Construct,
  props: NodekeeperClusterProps,
  surroundings: FunctionSurroundings,
  variables: VariableValues,
): Serving {
  const heartbeat = new ManifestFunction(scope, { manifest: heartbeatManifest, surroundings, variables });
  const heartbeatUrl = surroundings.features.has('heartbeatUrl') ? urlOf(heartbeat.lambda) : undefined;
  const watch = surroundings.features.has('streamedWatches')
    ? new Watch(scope, 'WatchStream', { manifest: watchManifest, surroundings, variables })
    : undefined;
  const auditLog = new AuditLog(scope, 'AuditLog');
  const certificate = props.instanceIdentityCertificateFile;
  const api = new ManifestFunction(scope, {
    manifest: apiManifest,
    surroundings,
    variables: {
      ...variables,
      ACCESS_ENTRIES_FILE,
      ...auditLog.environment,
      ...(watch === undefined ? {} : { WATCH_URL: watch.url }),
    },
    // It writes no metrics of its own, and its environment is nearly full.
    environment: { POWERTOOLS_METRICS_NAMESPACE: 'Nodekeeper' },
    files: {
      [ACCESS_ENTRIES_FILE]: JSON.stringify(accessEntriesOf(props)),
      ...(certificate === undefined ? {} : { [INSTANCE_IDENTITY_KEY_FILE]: readInstanceIdentityKey(certificate) }),
    },
  });
  api.allow(['logs:PutLogEvents'], [auditLog.streamArn]);
  const apiUrl = surroundings.policy.apiUrl === 'on' ? urlOf(api.lambda) : undefined;
  const frontDoor = new FrontDoor(scope, 'FrontDoor', {
    clusterId: surroundings.clusterId,
    heartbeat: heartbeat.lambda,
    heartbeatUrl,
    api: api.lambda,
    ...requestLimits(props, surroundings.policy),
    customDomain: props.customDomain,
  });
  const functions: [FunctionName, IFunction][] = [
    ['heartbeat', heartbeat.lambda],
    ['api', api.lambda],
    ...(watch === undefined ? [] : [['watch', watch.lambda] as [FunctionName, IFunction]]),
  ];
  return { frontDoor, heartbeatUrl, apiUrl, functions };
}

/** A second way to a function that authenticates requests itself, as it does those of the HTTP API. */
const urlOf = (fn: IFunction): string => fn.addFunctionUrl({ authType: FunctionUrlAuthType.NONE }).url;
