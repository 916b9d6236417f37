/** nodekeeper serve: starts the cluster, with its demonstration when asked, and ends it in order. */
import { join } from 'node:path';
import type { Demo, ProcessCloud } from '../../demo/demo.ts';
import { greeting } from '../../demo/greeting.ts';
import { reportWhileSlow } from '../../shared/host/report-while-slow.ts';
import { listenForSignals } from '../../shared/host/signals.ts';
import { StartError } from '../../shared/host/start-error.ts';
import { DEFAULT_DATA_DIRECTORY, parseServeOptions, SERVE_USAGE, type ServeOptions } from '../options.ts';
import { startServe } from '../serve.ts';
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
  if (options.service === 'uninstall') return uninstallService(machine);
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
  const cluster = await startServe(options, {
    print: (line) => process.stderr.write(`${line}\n`),
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
  try {
    if (options.demo && demonstration && cloud && !signals.stopping()) {
      demo = await demonstration.startDemo(cluster, cloud, options.demo).finally(slowly('starting the machines'));
    }
    if (!signals.stopping()) {
      const { nodes = 0, ec2Nodes = 0 } = options.demo ?? {};
      const seconds = cluster.readyMs / 1_000;
      const page = demo?.console?.address;
      say(greeting({ ...cluster, defaultDirectory: DEFAULT_DATA_DIRECTORY, seconds, nodes, ec2Nodes, console: page }));
    }
    if (!signals.stopping()) await manager.ready(() => `${cluster.fault() ?? 'serves'} (${cluster.url})`);
    await signals.first;
    say('stopping');
  } finally {
    setTimeout(() => process.exit(), STOP_MAX_MS).unref();
    await manager.stopping();
    await demo?.stop();
    cloud?.stop();
    await cluster.stop();
  }
  return 0;
}

/** Loaded when asked for: a cluster of real machines needs nothing of it. */
async function loadDemo() {
  const { processCloud, startDemo } = await import('../../demo/demo.ts');
  return { processCloud, startDemo };
}
