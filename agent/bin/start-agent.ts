#!/usr/bin/env node
/**
 * What the unit, or the service of Windows, starts: chooses the version of the agent, and runs it in this process. It
 * is installed with the agent and never updated, so a bad version cannot break the way back.
 *
 *   start-agent.mjs --config FILE …        the service: a version on trial is counted, and has two minutes
 *   start-agent.mjs plan|doctor|… …        a command of the current version
 */
import { spawn } from 'node:child_process';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { Worker } from 'node:worker_threads';
import { hostSystem } from '../adapters/config/host-system.ts';
import { jsonLog } from '../adapters/system/json-log.ts';
import { logOutput } from '../adapters/system/log-output.ts';
import { updateFiles } from '../adapters/updates/update-files.ts';
import { InstalledVersions, type Started } from '../app/updates/installed-versions.ts';
import { trialOutcome } from '../app/updates/trial-watch.ts';
import { CURRENT_LINK, TRIAL_MS, TRIAL_RECORD, type Trial, trialText } from '../rules/update-record.ts';

const STATE_DIRECTORY = process.env['STATE_DIRECTORY'] ?? hostSystem.rootDirectory;
const DIRECTORY = join(STATE_DIRECTORY, 'agents');
const INSTALLED = join(dirname(fileURLToPath(import.meta.url)), 'nodekeeper-agent.mjs');
/** After the end of the trial. A version that blocks its event loop is killed then. Seconds. */
const GUARD_EXTRA_SECONDS = 10;
/** The guard ends this long after the agent at the latest. Seconds. */
const GUARD_PERIOD_SECONDS = 5;
/** Reads of a record that cannot be read. */
const GUARD_READS_MAX = 12;

const log = jsonLog({
  write: logOutput(process.env['NODEKEEPER_LOG_FILE']),
  nowMs: Date.now,
  priorities: process.env['JOURNAL_STREAM'] !== undefined,
});
const versions = new InstalledVersions(updateFiles(DIRECTORY));
const isService = (process.argv[2] ?? '').startsWith('--config');

/** A disk that cannot be written or read does not stop the agent. */
async function chosen(): Promise<Started> {
  try {
    if (isService) return await versions.start();
    return { file: (await updateFiles(DIRECTORY).readLink(CURRENT_LINK)) ?? '', trial: undefined };
  } catch (error) {
    log.error('the records of updates cannot be used; the installed agent starts', { error });
    return { file: '', trial: undefined };
  }
}

async function endTrial(trial: Trial, message: string, doubt?: { readonly isDoubtful: boolean }): Promise<never> {
  log.error('the new version is not kept', { version: trial.version, why: message });
  await versions.rollBack(trial, message, doubt).catch((error: unknown) => {
    log.error('the previous version could not be restored; the next start tries again', { error });
  });
  process.exit(1);
}

/** Ends the trial in time. A confirmed version has removed the record. */
async function watchTrial(trial: Trial): Promise<void> {
  // The watch does not keep a process alive.
  const sleep = (milliseconds: number) =>
    new Promise<void>((resolve) => void setTimeout(resolve, milliseconds).unref());
  const outcome = await trialOutcome(trial, { versions, time: { sleep } });
  switch (outcome.kind) {
    case 'ended':
      return;
    case 'silent':
      return endTrial(trial, `no accepted heartbeats in ${TRIAL_MS / 1_000} s`, { isDoubtful: true });
    case 'unreadable':
      log.error('the record of the trial cannot be read; the agent ends, and the next start decides', {
        version: trial.version,
        error: outcome.cause,
      });
      process.exit(1);
  }
}

/**
 * Ends a version that blocks its event loop, from a process of its own: after the trial, and a minute later if the
 * record cannot be read. The next start differs in its count, so only this process is killed.
 */
const GUARD = `record=$1 text=$2 agent=$3 directory=$4
  wait_or_exit() { sleep ${GUARD_PERIOD_SECONDS}; kill -0 "$agent" || exit 0; }
  n=0; while [ $n -lt ${Math.ceil((TRIAL_MS / 1_000 + GUARD_EXTRA_SECONDS) / GUARD_PERIOD_SECONDS)} ]; do
    wait_or_exit; n=$((n+1))
  done
  n=0; while [ $n -lt ${GUARD_READS_MAX} ]; do
    if read=$(cat "$record" 2>/dev/null); then
      [ "$read" = "$text" ] && kill -9 "$agent"
      exit 0
    fi
    [ ! -e "$record" ] && ls "$directory" >/dev/null 2>&1 && exit 0
    wait_or_exit; n=$((n+1))
  done
  kill -9 "$agent"`;

/** The same in a thread, for Windows. It ends with the process. */
const GUARD_THREAD = `const { existsSync, readFileSync } = require('node:fs');
  const { record, text, directory, trialMs, periodMs, readsMax } = require('node:worker_threads').workerData;
  const end = () => process.kill(process.pid, 'SIGKILL');
  function look(reads) {
    try {
      if (readFileSync(record, 'utf8').trim() === text) end();
    } catch {
      if (!existsSync(record) && existsSync(directory)) return;
      if (reads < readsMax) setTimeout(look, periodMs, reads + 1);
      else end();
    }
  }
  setTimeout(look, trialMs, 1);`;

function guardTrial(trial: Trial): void {
  const record = join(DIRECTORY, TRIAL_RECORD);
  if (process.platform === 'win32') {
    const workerData = {
      record,
      text: trialText(trial).trim(),
      directory: DIRECTORY,
      trialMs: TRIAL_MS + GUARD_EXTRA_SECONDS * 1_000,
      periodMs: GUARD_PERIOD_SECONDS * 1_000,
      readsMax: GUARD_READS_MAX,
    };
    new Worker(GUARD_THREAD, { eval: true, workerData })
      .on('error', (error) => log.warn('a blocked version would not be noticed', { error }))
      .unref();
    return;
  }
  const args = ['-c', GUARD, 'sh', record, trialText(trial).trim(), String(process.pid), DIRECTORY];
  spawn('/bin/sh', args, { detached: true, stdio: 'ignore' })
    .on('error', (error) => log.warn('a blocked version would not be noticed', { error }))
    .unref();
}

const { file, trial } = await chosen();
if (trial !== undefined) {
  void watchTrial(trial);
  guardTrial(trial);
}
process.env['NODEKEEPER_AGENTS'] = DIRECTORY;
try {
  await import(pathToFileURL(file === '' ? INSTALLED : join(DIRECTORY, file)).href);
} catch (error) {
  if (trial !== undefined) await endTrial(trial, `it does not start: ${(error as Error).message}`);
  if (file === '') throw error;
  log.error('the current version does not start; the installed agent starts', { file, error });
  await import(pathToFileURL(INSTALLED).href);
}
