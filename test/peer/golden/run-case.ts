/** Replays one case with one kubectl against one server. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ApiClient } from '../../../demo/fleet/api-client.ts';
import { readKubeconfig } from '../../support/kubeconfig.ts';
import {
  type Kubectl,
  type KubectlOptions,
  type KubectlPlace,
  type KubectlResult,
  makePlace,
  runKubectl,
  startKubectl,
} from '../../support/kubectl.ts';
import { normalise } from '../normalise.ts';
import { type Body, expectationOf, type GoldenCase, type GoldenStep, textOf } from './case.ts';
import { compareStep } from './compare.ts';

export interface ReplayTarget {
  readonly kubectl: Kubectl;
  readonly kubeconfig: string;
  readonly client: ApiClient;
  /** The server knows policy/v1; else policy/v1beta1 stands for it. */
  readonly servesPolicyV1: boolean;
}

export interface CaseResult {
  /** Lines for a person; empty when the case passed. */
  readonly problems: readonly string[];
  readonly durationMs: number;
}

const STEP_TIMEOUT_MS = 120_000;
/** A command that never ends is interrupted so long after its last awaited line, and after so long at the latest. */
const INTERRUPT_AFTER_MS = 700;
const INTERRUPT_LATEST_MS = 60_000;

export async function runCase(golden: GoldenCase, target: ReplayTarget): Promise<CaseResult> {
  const startedMs = performance.now();
  const place = makePlace();
  const serverUrl = readKubeconfig(target.kubeconfig).url;
  const surroundings = { serverUrl, workDir: place.work, homeDir: place.home };
  const captured = new Map<string, string>();
  const problems: string[] = [];
  try {
    for (const [at, recorded] of golden.steps.entries()) {
      const step = expectationOf(recorded, target.kubectl.minor);
      if (step.only_if_served !== undefined && !(await isServed(step.only_if_served, target, place))) continue;
      const result = await runStep(step, target, place, captured);
      if (step.capture !== undefined) captured.set(step.capture, result.stdout.trim());
      const found = compareStep(golden, step, {
        exitCode: result.exitCode,
        stdout: normalise(result.stdout, surroundings),
        stderr: normalise(result.stderr, surroundings),
      });
      if (result.timedOut) found.unshift(`did not end within ${STEP_TIMEOUT_MS} ms`);
      if (found.length > 0)
        problems.push(`step ${at}: kubectl ${step.args.join(' ')}`, ...found.map((line) => `  ${line}`));
    }
  } finally {
    place.remove();
  }
  return { problems, durationMs: performance.now() - startedMs };
}

async function isServed(resource: string, target: ReplayTarget, place: KubectlPlace): Promise<boolean> {
  const options = { kubeconfig: target.kubeconfig, place };
  const { stdout } = await runKubectl(target.kubectl, ['api-resources', '-o', 'name'], options);
  return stdout.split('\n').includes(resource);
}

async function runStep(
  step: GoldenStep,
  target: ReplayTarget,
  place: KubectlPlace,
  captured: ReadonlyMap<string, string>,
): Promise<KubectlResult> {
  const fill = (text: string): string => {
    const filled = text.replace(/\$\{(\w+)\}/g, (whole, name: string) => captured.get(name) ?? whole);
    return target.servesPolicyV1 ? filled : filled.replace(/policy\/v1(?!beta1)/g, 'policy/v1beta1');
  };
  const optionsFor = (body: Body | undefined): KubectlOptions => {
    const stdin = textOf(body);
    return {
      kubeconfig: target.kubeconfig,
      place,
      timeoutMs: STEP_TIMEOUT_MS,
      ...(stdin === undefined ? {} : { stdin: fill(stdin) }),
      ...(step.env === undefined ? {} : { env: step.env }),
    };
  };
  for (const [file, body] of Object.entries(step.files ?? {})) {
    writeFileSync(join(place.work, file), fill(textOf(body) ?? ''));
  }
  const running = startKubectl(target.kubectl, step.args.map(fill), optionsFor(step.stdin));
  const others = (step.meanwhile ?? []).map(async (other) => {
    await running.untilLines(other.when_lines ?? 0);
    await pause(other.after_ms ?? 0);
    await runKubectl(target.kubectl, other.args.map(fill), optionsFor(other.stdin));
  });
  if (step.until_lines !== undefined) {
    await Promise.race([running.untilLines(step.until_lines), pause(INTERRUPT_LATEST_MS)]);
    await Promise.race([running.ended, pause(INTERRUPT_AFTER_MS)]);
    running.interrupt();
  }
  const result = await running.ended;
  await Promise.all(others);
  // `service_account` asks for what a real server's token controller needs; no server of ours has service accounts.
  return result;
}

const pause = (ms: number): Promise<void> =>
  new Promise((resolve) => {
    setTimeout(resolve, ms).unref();
  });
