/** What the commands of `npm run peer` share. */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ApiAnswer, ApiClient, ApiRequest } from '../../demo/fleet/api-client.ts';

export interface Command {
  readonly usage: string;
  /** @returns the exit code: 1 when something differs. @throws UsageError */
  run(args: readonly string[]): Promise<number>;
}

/** The command line lacks something or is wrong. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

/** A whole number from 1. @throws UsageError */
export function wholeNumber(option: string, text: string): number {
  const value = Number(text);
  if (Number.isSafeInteger(value) && value >= 1) return value;
  throw new UsageError(`--${option} expects a whole number from 1, not ${text}`);
}

/** Works in `dir`, or in a folder that is deleted afterwards. */
export async function inFolder<Result>(
  dir: string | undefined,
  work: (dir: string) => Promise<Result>,
): Promise<Result> {
  const folder = dir ?? mkdtempSync(join(tmpdir(), 'nodekeeper-peer-'));
  mkdirSync(folder, { recursive: true });
  try {
    return await work(folder);
  } finally {
    if (dir === undefined) rmSync(folder, { recursive: true, force: true });
  }
}

/** A server answered with a status that the caller has no use for. */
export class AnswerError extends Error {
  override readonly name = 'AnswerError';
}

const CHARACTERS_SHOWN = 300;

/**
 * The answer to a request. @throws AnswerError for a status that is not in `expected` @throws Error without an answer
 */
export async function answerOf(
  client: ApiClient,
  request: ApiRequest,
  expected: readonly number[] = [200, 201],
): Promise<Extract<ApiAnswer, { kind: 'answered' }>> {
  const answer = await client.send(request);
  if (answer.kind === 'failed') throw new Error(`${request.path}: no answer`, { cause: answer.cause });
  if (expected.includes(answer.status)) return answer;
  const body = JSON.stringify(answer.body)?.slice(0, CHARACTERS_SHOWN);
  throw new AnswerError(`${request.method} ${request.path}: ${answer.status} ${body}`);
}
