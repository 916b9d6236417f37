#!/usr/bin/env node
/** The agent as a program: its commands, or the agent itself. `--help` lists the options. */
import { readFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { loadConfig } from '../adapters/config/load-config.ts';
import { withPinnedAuthority } from '../adapters/http/pinned-authority.ts';
import { mountMode } from '../adapters/runtime-exec/isolation.ts';
import { jsonLog } from '../adapters/system/json-log.ts';
import { logOutput } from '../adapters/system/log-output.ts';
import { AgentStartError } from '../app/start-checks.ts';
import type { AgentConfig } from '../config.ts';
import { describeConfigFault } from '../rules/config-settings.ts';
import { AGENT_VERSION, AgentProcess, RELEASE } from './agent-process.ts';
import { doctor } from './doctor.ts';
import { images } from './images.ts';
import { plan } from './plan.ts';
import { relayInit } from './relay-init.ts';
import { SLEEP_USAGE, sleepCommand } from './sleep.ts';

/** Time for the loops to end after a stop. Milliseconds. */
const STOP_MS = 5_000;

/** Returns the exit code. */
type Command = (args: readonly string[]) => number | Promise<number>;

/** A service of Windows has no stderr. */
const writeLog = logOutput(process.env['NODEKEEPER_LOG_FILE']);
const print = (line: string): void => void process.stdout.write(`${line}\n`);
const printError = (line: string): void => writeLog(`${line}\n`);

/** By first argument. Without one of these, the agent runs. */
const COMMANDS: Readonly<Record<string, Command>> = {
  '--version'() {
    print(RELEASE);
    return 0;
  },
  plan: (args) =>
    plan(args, { readText: (path) => readFileSync(path, 'utf8'), hostname, print, printError, mountMode }),
  relay(args) {
    const { exitCode, text } = relayInit(args, Date.now());
    (exitCode === 0 ? process.stdout : process.stderr).write(text);
    return exitCode;
  },
  doctor: (args) =>
    doctor(args, {
      print: (text) => print(text.trimEnd()),
      loadConfig,
      environment: process.env,
      agentVersion: RELEASE,
      nowMs: Date.now,
    }),
  images: (args) => images(args, { print, printError, loadConfig }),
  install: (args) => installer('install', args),
  uninstall: (args) => installer('uninstall', args),
  /** Exit code 1: the cluster refused the promise, or could not be reached. */
  async sleep(args) {
    const command = sleepCommand(args);
    if (command === undefined) {
      process.stderr.write(SLEEP_USAGE);
      return 2;
    }
    const log = openLog();
    const { accepted, line } = await new AgentProcess(readConfig(command.rest, log), log).sleep(command);
    (accepted ? print : printError)(line);
    return accepted ? 0 : 1;
  },
};

async function installer(command: 'install' | 'uninstall', args: readonly string[]): Promise<number> {
  if (process.platform !== 'win32') {
    printError(`nodekeeper-agent: ${command} is for Windows; use install.sh on Linux`);
    return 2;
  }
  const { installCommand } = await import('./install-windows.ts');
  const faultOf = (configFile: string): string | undefined => {
    const loaded = loadConfig(['--config', configFile]);
    return loaded.kind === 'faults' ? loaded.faults.map(describeConfigFault)[0] : undefined;
  };
  return installCommand(command, args, { print, printError, environment: process.env, faultOf });
}

async function runAgent(args: readonly string[]): Promise<number> {
  const log = openLog();
  let config = readConfig(args, log);
  try {
    config = await withPinnedAuthority(config);
  } catch (error) {
    if (!(error instanceof AgentStartError)) throw error;
    printError(`nodekeeper-agent: ${error.message}`);
    return 1;
  }
  const agent = new AgentProcess(config, log, { endsWhenRefused: !isService() });
  for (const name of ['SIGTERM', 'SIGINT'] as const) {
    process.once(name, () => {
      log.info('stopping; pods stay', { signal: name });
      agent.stop();
      // Does not wait for a hanging request. Nothing is lost.
      setTimeout(() => process.exit(0), STOP_MS).unref();
    });
  }
  const { nodeName, endpoint, runtime } = config;
  log.info('starting', { node: nodeName, endpoint, runtime, version: AGENT_VERSION });
  try {
    await agent.run();
    return 0;
  } catch (error) {
    if (error instanceof AgentStartError) printError(`nodekeeper-agent: ${error.message}`);
    else log.error('the agent failed', { error });
    return 1;
  }
}

/** systemd shows the log. */
const hasJournal = (): boolean => process.env['JOURNAL_STREAM'] !== undefined;
/** systemd, or Windows, starts the agent again. */
const isService = (): boolean => hasJournal() || process.env['NODEKEEPER_LOG_FILE'] !== undefined;

function openLog() {
  return jsonLog({
    write: writeLog,
    nowMs: Date.now,
    priorities: hasJournal(),
    debug: process.env['NODEKEEPER_DEBUG'] === '1',
  });
}

/** Ends the process for `--help` and for a configuration with faults. */
function readConfig(args: readonly string[], log: ReturnType<typeof openLog>): AgentConfig {
  const loaded = loadConfig(args);
  if (loaded.kind === 'help') {
    process.stdout.write(loaded.text);
    process.exit(0);
  }
  for (const warning of loaded.warnings) log.warn(warning);
  if (loaded.kind === 'ok') return loaded.config;
  for (const { message, at } of loaded.faults) {
    printError(`nodekeeper-agent: ${at === undefined ? '' : `${JSON.stringify(at)}: `}${message}`);
  }
  process.exit(1);
}

const args = process.argv.slice(2);
const [name = '', ...rest] = args;
process.exit(Object.hasOwn(COMMANDS, name) ? await COMMANDS[name]!(rest) : await runAgent(args));
