/** npm run start:aws: the deployment, emulated on this machine. `npm run start:aws -- --help` lists the options. */
import { relative } from 'node:path';
import { openConsole } from '../../cli/console.ts';
import type { Console } from '../../console/server/serve-console.ts';
import { CLOUD_SOCKET, serveCloudControl } from '../../demo/ec2/control.ts';
import { createInstances } from '../../demo/ec2/machines.ts';
import { FLEET_SOCKET, serveFleetControl, startFleet } from '../../demo/fleet/index.ts';
import { nameMachines } from '../../demo/fleet/names.ts';
import { ControlError } from '../../shared/host/control-socket.ts';
import { StartError } from '../../shared/host/start-error.ts';
import { parseStartOptions, type StartOptions, USAGE } from '../options.ts';
import { type LocalSystem, startLocal } from '../runtime.ts';

/** Longest an orderly end may take before it is cut short. */
const STOP_MAX_MS = 10_000;

try {
  const options = parseStartOptions(process.argv.slice(2));
  if (options.help) console.log(USAGE);
  else await run(options);
} catch (error) {
  if (!(error instanceof StartError || error instanceof ControlError)) throw error;
  console.error(`nodekeeper: ${error.message}`);
  process.exitCode = 1;
}

async function run(options: StartOptions): Promise<void> {
  const startedMs = performance.now();
  const say = (line: string) => {
    if (!options.quiet) console.log(line);
  };
  const signals = listenForSignals();
  let system: LocalSystem;
  try {
    system = await startLocal({
      dataDirectory: options.dataDirectory,
      port: options.port,
      controllers: options.controllers,
      policyFile: options.policyFile,
      synthesis: options.synthesis,
      recordCallsFile: options.recordCallsFile,
      awsLimits: options.awsLimits,
      accountConcurrency: options.accountConcurrency,
      chunkHold: options.chunkHold,
    });
  } catch (error) {
    // Ctrl-C reaches the synthesis too; that it then fails is no news.
    if (signals.stopping()) return;
    throw error;
  }
  const stopFleet = signals.stopping()
    ? async () => {}
    : await startMachines(system, options).catch(stopAndRethrow(system));
  const page = options.console && !options.quiet && !signals.stopping() ? await startConsole(system) : undefined;

  if (!signals.stopping()) {
    say(greeting(system, options, page, (performance.now() - startedMs) / 1_000));
    if (options.verbose) {
      const { endpoint, tableNames } = system.dynamodb;
      say(`DynamoDB: ${endpoint}, tables ${tableNames.join(', ')}`);
      say(`start, in ms: ${JSON.stringify(system.timings)}`);
    }
  }
  const broken = await Promise.race([signals.first, system.broken]);
  if (broken !== undefined) {
    console.error(`nodekeeper: ${broken}`);
    process.exitCode = 1;
  }
  say('stopping');
  setTimeout(() => process.exit(), STOP_MAX_MS).unref();
  await page?.stop();
  await stopFleet();
  await system.stop();
  process.exit();
}

function stopAndRethrow(system: LocalSystem): (error: unknown) => Promise<never> {
  return async (error) => {
    await system.stop();
    throw error;
  };
}

/**
 * Listens from the beginning: Ctrl-C while starting leaves nothing behind either: the start is finished, then
 * undone. A second signal ends the process at once; the engine ends with it.
 */
function listenForSignals(): { readonly first: Promise<undefined>; stopping(): boolean } {
  let received = 0;
  const first = new Promise<undefined>((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) {
      process.on(signal, () => {
        received += 1;
        if (received > 1) process.exit(130);
        resolve(undefined);
      });
    }
  });
  return { first, stopping: () => received > 0 };
}

async function startMachines(system: LocalSystem, options: StartOptions): Promise<() => Promise<void>> {
  const { cloud, region } = system;
  const zones = Array.from({ length: options.zones }, (_, index) => `local-${String.fromCharCode(97 + index)}`);
  const instances = nameMachines(options.nodes, zones).slice(0, options.ec2Nodes);
  const inCloud = createInstances(cloud, instances, { region, nowMs: Date.now() });
  const cloudControl = await serveCloudControl(`${system.dataDirectory}/${CLOUD_SOCKET}`, cloud, inCloud);
  if (options.nodes === 0) return () => cloudControl.close();
  const seconds = (name: string) => {
    const value = system.policy[name];
    return typeof value === 'number' ? value : undefined;
  };
  const beatIntervalSeconds = seconds('beatIntervalSeconds');
  const leaseDurationSeconds = seconds('leaseDurationSeconds');
  const fleet = startFleet({
    url: system.url,
    ca: system.caPem,
    token: system.fleetToken,
    nodes: options.nodes,
    zones,
    providerIds: inCloud.providerIds,
    silent: inCloud.poweredOff,
    ...(beatIntervalSeconds === undefined ? {} : { beatIntervalSeconds }),
    ...(leaseDurationSeconds === undefined ? {} : { leaseDurationSeconds }),
  });
  inCloud.power(fleet);
  const control = await serveFleetControl(`${system.dataDirectory}/${FLEET_SOCKET}`, fleet);
  return async () => {
    await cloudControl.close();
    await control.close();
    await fleet.stop();
  };
}

/** Local mode runs without it. undefined: it could not be started. */
async function startConsole({ kubeconfigPath }: LocalSystem): Promise<Console | undefined> {
  try {
    return await openConsole({ port: 0, values: { kubeconfig: kubeconfigPath }, environment: process.env });
  } catch (error) {
    console.error(`nodekeeper: the console is not served: ${error instanceof Error ? error.message : String(error)}`);
    return undefined;
  }
}

function greeting(system: LocalSystem, options: StartOptions, page: Console | undefined, seconds: number): string {
  const kubeconfig = relative('', system.kubeconfigPath);
  const path = kubeconfig.startsWith('..') ? system.kubeconfigPath : kubeconfig;
  const lines = [
    `Nodekeeper serves ${system.url} after ${seconds.toFixed(1)} s. Ctrl-C stops it. In another terminal:`,
    '',
    `  export KUBECONFIG=${path.startsWith('/') ? path : `$PWD/${path}`}`,
    '  kubectl get nodes --watch',
  ];
  if (options.nodes > 0) {
    const data = `--data ${path} `.replace(/\/kubeconfig $/, ' ');
    lines.push(`  npm run fleet -- ${data}silence 'edge-a-*'   # a zone falls silent: NotReady within 45 s`);
    if (options.ec2Nodes > 0) {
      lines.push(`  npm run cloud -- ${data}terminate edge-a-0    # its instance terminates: the Node is deleted`);
    }
    lines.push('  kubectl describe nodes');
  } else {
    lines.push('  kubectl api-resources', '  kubectl get leases -n kube-node-lease');
  }
  if (page !== undefined) lines.push('', `The console is at ${page.address}`);
  return `${lines.join('\n')}\n`;
}
