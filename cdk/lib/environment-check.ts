import type { FunctionName, Listed } from '../../functions/function-list.ts';
import type { HeartbeatEnvironment } from '../../functions/heartbeat/environment.ts';
import type {
  ApiEnvironment,
  CloudNodeEnvironment,
  EvictorEnvironment,
  MarkerEnvironment,
  MonitorEnvironment,
  ObjectStreamEnvironment,
  PodGcEnvironment,
  StreamEnvironment,
  WatchEnvironment,
} from '../../shared/config/environment.ts';

/** The variables that the configuration of each function reads. */
interface EnvironmentOf {
  readonly heartbeat: HeartbeatEnvironment;
  readonly api: ApiEnvironment;
  readonly watch: WatchEnvironment;
  readonly 'health-stream': StreamEnvironment;
  readonly 'object-stream': ObjectStreamEnvironment;
  readonly 'node-monitor': MonitorEnvironment;
  readonly 'node-marker': MarkerEnvironment;
  readonly evictor: EvictorEnvironment;
  readonly 'cloud-node': CloudNodeEnvironment;
  readonly 'pod-gc': PodGcEnvironment;
}

/** Set for every function (manifest-function.ts). */
export type CommonVariable =
  | 'CLUSTER_ID'
  | 'POWERTOOLS_SERVICE_NAME'
  | 'POWERTOOLS_METRICS_NAMESPACE'
  | 'POWERTOOLS_LOG_LEVEL';

type RequiredKey<T> = {
  [K in keyof T]-?: undefined extends T[K] ? never : object extends Pick<T, K> ? never : K;
}[keyof T];
type Missing = {
  [Name in keyof EnvironmentOf & FunctionName]: Exclude<
    RequiredKey<EnvironmentOf[Name]>,
    CommonVariable | Extract<Listed, { readonly name: Name }>['environment'][number]
  >;
}[keyof EnvironmentOf & FunctionName];

/** A required variable that a manifest does not name is a compile error where this is used. */
export type Complete<T> = [Missing] extends [never] ? T : { readonly missingFromManifest: Missing };
