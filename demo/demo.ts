/**
 * What `--demo` adds to a cluster: simulated machines, a simulated EC2 with instances for some of them, and the
 * console.
 */
import { sendToApi } from '../cli/api-request.ts';
import { createToken } from '../cli/bootstrap-token.ts';
import { openConsole } from '../cli/console.ts';
import { apiAccess } from '../cli/kubeconfig.ts';
import type { Console } from '../console/server/serve-console.ts';
import { systemClock } from '../shared/clock.ts';
import { defined } from '../shared/defined.ts';
import type { Cloud } from '../shared/fleet/instances/cloud.ts';
import type { Policy } from '../shared/fleet/policy.ts';
import { authorityHash } from '../shared/host/authority-hash.ts';
import { ControlError } from '../shared/host/control-socket.ts';
import { memoryCloud } from './ec2/cloud.ts';
import type { InstanceStateChange } from './ec2/cloud-world.ts';
import { CLOUD_SOCKET, serveCloudControl } from './ec2/control.ts';
import type { DemoCloud } from './ec2/demo-cloud.ts';
import { KeptWorld } from './ec2/kept-world.ts';
import { createInstances } from './ec2/machines.ts';
import { FLEET_SOCKET, serveFleetControl, startFleet } from './fleet/index.ts';
import { nameMachines } from './fleet/names.ts';
import { type Machines, serveMachines } from './machines/control.ts';
import type { DemoOptions } from './options.ts';

/** The running cluster. */
export interface DemoCluster {
  readonly url: string;
  readonly caPem: string | undefined;
  readonly fleetToken: string;
  readonly kubeconfigPath: string | undefined;
  readonly dataDirectory: string;
  readonly policy: Partial<Pick<Policy, 'beatIntervalSeconds' | 'leaseDurationSeconds'>>;
}

const REGION = 'us-east-1';
const ACCOUNT_ID = '000000000000';
/** Time that an instance needs to start, to stop and to shut down: long enough to be visible. Milliseconds. */
const INSTANCE_TURN_MS = 3_000;

export interface ProcessCloud extends DemoCloud {
  readonly cloud: Cloud;
  stop(): void;
}

/** The simulated EC2 in this process. @param file where it is kept; undefined: nowhere */
export function processCloud(options: {
  readonly file: string | undefined;
  readonly clusterId: string;
  onTrouble(message: string): void;
}): ProcessCloud {
  const kept = new KeptWorld({
    clock: systemClock,
    accountId: ACCOUNT_ID,
    startingMs: INSTANCE_TURN_MS,
    stoppingMs: INSTANCE_TURN_MS,
    shuttingDownMs: INSTANCE_TURN_MS,
    detachingMs: INSTANCE_TURN_MS,
    ...options,
  });
  const { world } = kept;
  const cloud = memoryCloud({ clock: systemClock, region: REGION, accountId: ACCOUNT_ID, world, ...options });
  if (world.nextChangeAtMs() !== undefined) kept.report();
  let trouble: string | null = null;
  return {
    cloud,
    world,
    subscribe: (listener: (change: InstanceStateChange) => void) => kept.subscribe(listener),
    changed: () => kept.changed(),
    fail(next) {
      trouble = next;
      cloud.fail(next);
    },
    get trouble() {
      return trouble;
    },
    stop: () => kept.stop(),
  };
}

export interface Demo {
  /** Undefined: it is not served. */
  readonly console: Console | undefined;
  stop(): Promise<void>;
}

export async function startDemo(cluster: DemoCluster, cloud: DemoCloud, options: DemoOptions): Promise<Demo> {
  const zones = Array.from({ length: options.zones }, (_, index) => `local-${String.fromCharCode(97 + index)}`);
  const instances = nameMachines(options.nodes, zones).slice(0, options.ec2Nodes);
  const inCloud = createInstances(cloud, instances, { region: REGION, nowMs: Date.now() });
  const cloudControl = await orWithout(
    'cloud',
    serveCloudControl(`${cluster.dataDirectory}/${CLOUD_SOCKET}`, cloud, inCloud),
  );
  const page =
    options.console && cluster.kubeconfigPath !== undefined ? await startConsole(cluster.kubeconfigPath) : undefined;
  const machines = await orWithout('machine', startMachines(cluster));
  if (options.nodes === 0) {
    return {
      console: page,
      async stop() {
        await page?.stop();
        await machines?.stop();
        await cloudControl?.close();
      },
    };
  }
  const fleet = startFleet({
    url: cluster.url,
    ...defined({ ca: cluster.caPem }),
    token: cluster.fleetToken,
    nodes: options.nodes,
    zones,
    providerIds: inCloud.providerIds,
    silent: inCloud.poweredOff,
    ...defined({
      beatIntervalSeconds: cluster.policy.beatIntervalSeconds,
      leaseDurationSeconds: cluster.policy.leaseDurationSeconds,
    }),
  });
  inCloud.power(fleet);
  const control = await orWithout('fleet', serveFleetControl(`${cluster.dataDirectory}/${FLEET_SOCKET}`, fleet));
  return {
    console: page,
    async stop() {
      await page?.stop();
      await machines?.stop();
      await cloudControl?.close();
      await control?.close();
      await fleet.stop();
    },
  };
}

/** Real machines, which join with a bootstrap token. undefined: the users of the cluster are not ours. */
async function startMachines({
  url,
  caPem,
  kubeconfigPath,
  dataDirectory,
}: DemoCluster): Promise<Machines | undefined> {
  if (kubeconfigPath === undefined) return undefined;
  return serveMachines({
    dataDirectory,
    cluster: { url, authorityHash: caPem === undefined ? undefined : authorityHash(caPem) },
    createToken(nodes) {
      const access = apiAccess({ kubeconfig: kubeconfigPath }, {});
      return createToken({ nodes, hours: '1' }, systemClock.nowMs(), (call) => sendToApi(access, call));
    },
  });
}

/** The machines run without their commands. undefined: no command reaches them. */
async function orWithout<Serving>(command: string, serving: Promise<Serving>): Promise<Serving | undefined> {
  try {
    return await serving;
  } catch (error) {
    if (!(error instanceof ControlError)) throw error;
    console.error(`nodekeeper: npm run ${command} cannot reach this process: ${error.message}`);
    return undefined;
  }
}

/** A cluster runs without it. undefined: it could not be started. */
async function startConsole(kubeconfig: string): Promise<Console | undefined> {
  try {
    return await openConsole({ port: 0, values: { kubeconfig }, environment: process.env });
  } catch (error) {
    console.error(`nodekeeper: the console is not served: ${error instanceof Error ? error.message : String(error)}`);
    return undefined;
  }
}
