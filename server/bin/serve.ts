/** nodekeeper serve: starts the cluster, with its demonstration when asked, and ends it in order. */
import { relative } from 'node:path';
import type { Demo, ProcessCloud } from '../../demo/demo.ts';
import { StartError } from '../../shared/host/start-error.ts';
import { parseServeOptions, SERVE_USAGE, type ServeOptions } from '../options.ts';
import { type ServedCluster, startServe } from '../serve.ts';

/** Longest an orderly end may take before it is cut short. */
const STOP_MAX_MS = 5_000;

/** Runs until a signal. @returns the exit code */
export async function serveCommand(args: readonly string[]): Promise<number> {
  try {
    const options = parseServeOptions(args);
    if (!options.help) return await run(options);
    console.log(SERVE_USAGE);
    return 0;
  } catch (error) {
    if (!(error instanceof StartError)) throw error;
    console.error(`nodekeeper serve: ${error.message}`);
    return 1;
  }
}

async function run(options: ServeOptions): Promise<number> {
  // SQLite creates its files with the permissions that the mask leaves.
  process.umask(0o077);
  const signals = listenForSignals();
  const say = (line: string): void => {
    if (!options.quiet) console.log(line);
  };
  const demonstration = options.demo && (await loadDemo());
  let cloud: ProcessCloud | undefined;
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
  });
  let demo: Demo | undefined;
  try {
    if (options.demo && demonstration && cloud && !signals.stopping()) {
      demo = await demonstration.startDemo(cluster, cloud, options.demo);
    }
    if (!signals.stopping()) say(greeting(cluster, options, demo?.console?.address));
    await signals.first;
    say('stopping');
  } finally {
    setTimeout(() => process.exit(), STOP_MAX_MS).unref();
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

/** Listens from the beginning: a signal during the start ends what was started. A second one ends the process at once. */
function listenForSignals(): { readonly first: Promise<void>; stopping(): boolean } {
  let received = 0;
  const first = new Promise<void>((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) {
      process.on(signal, () => {
        received += 1;
        if (received > 1) process.exit(130);
        resolve();
      });
    }
  });
  return { first, stopping: () => received > 0 };
}

function greeting(cluster: ServedCluster, { demo }: ServeOptions, page: string | undefined): string {
  const seconds = (cluster.readyMs / 1_000).toFixed(1);
  const served = `Nodekeeper serves ${cluster.url} after ${seconds} s. Ctrl-C stops it.`;
  if (cluster.kubeconfigPath === undefined) return `${served}\n`;
  const kubeconfig = relative('', cluster.kubeconfigPath);
  const path = kubeconfig.startsWith('..') ? cluster.kubeconfigPath : kubeconfig;
  const lines = [
    `${served} In another terminal:`,
    '',
    `  export KUBECONFIG=${path.startsWith('/') ? path : `$PWD/${path}`}`,
    '  kubectl get nodes --watch',
  ];
  if (demo !== undefined && demo.nodes > 0) {
    const data = kubeconfig === '.nodekeeper/kubeconfig' ? '' : `--data ${cluster.dataDirectory} `;
    lines.push(`  npm run fleet -- ${data}silence 'edge-a-*'   # a zone falls silent: NotReady within 45 s`);
    if (demo.ec2Nodes > 0) {
      lines.push(`  npm run cloud -- ${data}terminate edge-a-0    # its instance terminates: the Node is deleted`);
    }
    lines.push('  kubectl describe nodes');
  } else {
    lines.push('  kubectl api-resources', '  kubectl get leases -n kube-node-lease');
  }
  if (page !== undefined) lines.push('', `The console is at ${page}`);
  return `${lines.join('\n')}\n`;
}
