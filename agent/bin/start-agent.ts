#!/usr/bin/env node
/**
 * What the unit starts: chooses the version of the agent, and runs it in this process. It is installed with the agent
 * and never updated, so a bad version cannot break the way back.
 *
 *   start-agent.mjs --config FILE …        the service: a version on trial is counted, and has two minutes
 *   start-agent.mjs plan|doctor|… …        a command of the current version
 */
import { spawn } from 'node:child_process';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { jsonLog } from '../adapters/system/json-log.ts';
import { updateFiles } from '../adapters/updates/update-files.ts';
import { InstalledVersions, type Started } from '../app/updates/installed-versions.ts';
import { CURRENT_LINK, TRIAL_MS, TRIAL_RECORD, type Trial, trialText } from '../rules/update-record.ts';

const STATE_DIRECTORY = process.env['STATE_DIRECTORY'] ?? '/var/lib/nodekeeper';
const DIRECTORY = join(STATE_DIRECTORY, 'agents');
const INSTALLED = join(dirname(fileURLToPath(import.meta.url)), 'nodekeeper-agent.mjs');
/** After the end of the trial. A version that blocks its event loop is killed then. Seconds. */
const GUARD_EXTRA_SECONDS = 10;
/** The guard ends this long after the agent at the latest. Seconds. */
const GUARD_PERIOD_SECONDS = 5;

const log = jsonLog({
  write: (line) => process.stderr.write(line),
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

/** Ends the trial in time, whatever the version does. A confirmed version has removed the record. */
function watchTrial(trial: Trial): void {
  const seconds = TRIAL_MS / 1_000;
  setTimeout(() => {
    void versions.trial().then((still) => {
      if (still?.file === trial.file) {
        void endTrial(trial, `no accepted heartbeats in ${seconds} s`, { isDoubtful: true });
      }
    });
  }, TRIAL_MS).unref();
  // The next start differs in its count, so only this process is killed.
  const looks = Math.ceil((seconds + GUARD_EXTRA_SECONDS) / GUARD_PERIOD_SECONDS);
  const wait = `n=0; while [ $n -lt ${looks} ]; do sleep ${GUARD_PERIOD_SECONDS}; kill -0 "$3" || exit 0; n=$((n+1)); done`;
  const script = `${wait}; [ "$(cat "$1" 2>/dev/null)" = "$2" ] && kill -9 "$3"`;
  const args = ['-c', script, 'sh', join(DIRECTORY, TRIAL_RECORD), trialText(trial).trim(), String(process.pid)];
  spawn('/bin/sh', args, { detached: true, stdio: 'ignore' })
    .on('error', (error) => log.warn('a blocked version would not be noticed', { error }))
    .unref();
}

const { file, trial } = await chosen();
if (trial !== undefined) watchTrial(trial);
process.env['NODEKEEPER_AGENTS'] = DIRECTORY;
try {
  await import(pathToFileURL(file === '' ? INSTALLED : join(DIRECTORY, file)).href);
} catch (error) {
  if (trial !== undefined) await endTrial(trial, `it does not start: ${(error as Error).message}`);
  if (file === '') throw error;
  log.error('the current version does not start; the installed agent starts', { file, error });
  await import(pathToFileURL(INSTALLED).href);
}
