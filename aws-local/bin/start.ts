/** npm run start:aws: the deployment, emulated on this machine. `npm run start:aws -- --help` lists the options. */
import { type Demo, startDemo } from '../../demo/demo.ts';
import { greeting } from '../../demo/greeting.ts';
import { listenForSignals } from '../../shared/host/signals.ts';
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
  if (!(error instanceof StartError)) throw error;
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
  const { nodes, zones, ec2Nodes } = options;
  const demoOptions = { nodes, zones, ec2Nodes, console: options.console && !options.quiet };
  const demo: Demo | undefined = signals.stopping()
    ? undefined
    : await startDemo(system, system.cloud, demoOptions).catch(stopAndRethrow(system));

  if (!signals.stopping()) {
    const seconds = (performance.now() - startedMs) / 1_000;
    // The default of the commands is the directory of `npm start`.
    const page = demo?.console?.address;
    say(greeting({ ...system, defaultDirectory: '', seconds, nodes, zones, ec2Nodes, console: page }));
    if (system.apiUrl !== undefined) say(`the API through the URL of its function: ${system.apiUrl}`);
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
  await demo?.stop();
  await system.stop();
  process.exit();
}

function stopAndRethrow(system: LocalSystem): (error: unknown) => Promise<never> {
  return async (error) => {
    await system.stop();
    throw error;
  };
}
