/** nodekeeper serve: starts the cluster, with its demonstration when asked, and ends it in order. */
import { join } from 'node:path';
import type { Demo, ProcessCloud } from '../../demo/demo.ts';
import { greeting } from '../../demo/greeting.ts';
import { reportWhileSlow } from '../../shared/host/report-while-slow.ts';
import { listenForSignals } from '../../shared/host/signals.ts';
import { StartError } from '../../shared/host/start-error.ts';
import type { ServedHub } from '../hub/serve-hub.ts';
import {
  DEFAULT_DATA_DIRECTORY,
  parseServeOptions,
  SERVE_USAGE,
  type ServeOptions,
  type UpstreamOptions,
} from '../options.ts';
import { serviceManager } from '../service/notify.ts';

/** Longest an orderly end may take before it is cut short. */
const STOP_MAX_MS = 5_000;

/** Runs until a signal. @returns the exit code */
export async function serveCommand(args: readonly string[]): Promise<number> {
  try {
    const options = parseServeOptions(args);
    if (options.help) console.log(SERVE_USAGE);
    else if (options.service !== undefined) await changeService(options);
    else if (options.printsPolicy) await printPolicy(options);
    else return await run(options);
    return 0;
  } catch (error) {
    if (!(error instanceof StartError)) throw error;
    console.error(`nodekeeper serve: ${error.message}`);
    return 1;
  }
}

async function printPolicy({ tables: named }: ServeOptions): Promise<void> {
  const { openDeployedTables } = await import('../tables/deployed-tables.ts');
  const { tablePolicy } = await import('../tables/table-policy.ts');
  const deployed = await openDeployedTables(named!, process.env);
  deployed.close();
  console.log(JSON.stringify(tablePolicy(deployed.tables, named!), undefined, 2));
}

async function changeService(options: ServeOptions): Promise<void> {
  const { installService, thisMachine, uninstallService } = await import('../service/install.ts');
  const machine = thisMachine((line) => console.log(line));
  const { serviceOf } = await import('../service/unit.ts');
  if (options.service === 'uninstall') return uninstallService(serviceOf(options), machine);
  await installService(options, { node: process.execPath, main: join(import.meta.dirname, 'start.mjs') }, machine);
}

async function run(options: ServeOptions): Promise<number> {
  // SQLite creates its files with the permissions that the mask leaves.
  process.umask(0o077);
  const signals = listenForSignals();
  const say = (line: string): void => {
    if (!options.quiet) console.log(line);
  };
  const demonstration = options.demo && (await loadDemo());
  const manager = serviceManager({
    environment: process.env,
    pid: process.pid,
    onFault: (message) => console.error(`nodekeeper: ${message}`),
  });
  let cloud: ProcessCloud | undefined;
  const slowly = (what: string): (() => void) => reportWhileSlow(`nodekeeper: ${what}`, (line) => console.error(line));
  const opened = slowly('opening the database and the listener');
  const print = (line: string): void => void process.stderr.write(`${line}\n`);
  const { upstream } = options;
  if (upstream !== undefined) {
    const { startHub } = await import('../hub/serve-hub.ts');
    const hub = await startHub({ ...options, upstream }, { print }).finally(opened);
    return await untilSignal(hub, async () => say(hubGreeting(hub, upstream)));
  }
  // A hub needs little of a cluster, and its memory is for watches.
  const { startServe } = await import('../serve.ts');
  const cluster = await startServe(options, {
    print,
    ...(demonstration && {
      cloudOf(data, onInstanceChange) {
        cloud = demonstration.processCloud({
          file: data.ephemeral ? undefined : data.file('cloud.json'),
          clusterId: options.clusterId,
          onTrouble: (message) => console.error(`nodekeeper: ${message}`),
        });
        cloud.subscribe(({ instanceId, state }) => onInstanceChange(instanceId, state));
        return cloud.cloud;
      },
    }),
  }).finally(opened);
  let demo: Demo | undefined;
  return await untilSignal(
    {
      ...cluster,
      async stop() {
        await demo?.stop();
        cloud?.stop();
        await cluster.stop();
      },
    },
    async () => {
      if (options.demo && demonstration && cloud) {
        demo = await demonstration.startDemo(cluster, cloud, options.demo).finally(slowly('starting the machines'));
      }
      if (signals.stopping()) return;
      const { nodes = 0, zones = 0, ec2Nodes = 0 } = options.demo ?? {};
      const machines = { nodes, zones, ec2Nodes };
      // Since the program was started: what the user waited for.
      const seconds = performance.now() / 1_000;
      const page = demo?.console?.address;
      say(greeting({ ...cluster, ...machines, defaultDirectory: DEFAULT_DATA_DIRECTORY, seconds, console: page }));
    },
  );

  /** `begin`: what follows the start, unless a signal came meanwhile. */
  async function untilSignal(
    served: { readonly url: string; fault(): string | undefined; stop(): Promise<void> },
    begin: () => Promise<void>,
  ): Promise<number> {
    try {
      if (!signals.stopping()) await begin();
      if (!signals.stopping()) await manager.ready(() => `${served.fault() ?? 'serves'} (${served.url})`);
      await signals.first;
      say('stopping');
    } finally {
      setTimeout(() => process.exit(), STOP_MAX_MS).unref();
      await manager.stopping();
      await served.stop();
    }
    return 0;
  }
}

/** What a hub says when it serves. */
const hubGreeting = (
  { url, caPem, dataDirectory }: ServedHub,
  { url: cluster }: UpstreamOptions,
): string => `Nodekeeper serves ${url}, a hub of ${cluster.href}, after ${(performance.now() / 1_000).toFixed(1)} s. Ctrl-C stops it. With the kubeconfig of the cluster:

  kubectl --server ${url}${caPem === undefined ? '' : ` --certificate-authority ${join(dataDirectory, 'ca.pem')}`} get nodes
`;

/** Loaded when asked for: a cluster of real machines needs nothing of it. */
async function loadDemo() {
  const { processCloud, startDemo } = await import('../../demo/demo.ts');
  return { processCloud, startDemo };
}
