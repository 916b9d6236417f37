import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { repositoryRoot } from '../../../cdk/lib/function-names.ts';

const oneLine = (text: string): string => text.replaceAll(/\s+/g, ' ');

/** The anchor of the heading under which docs/deviations.md has these words, however its lines are broken. */
export function deviationAnchor(words: string): string | undefined {
  const text = readFileSync(join(repositoryRoot, 'docs/deviations.md'), 'utf8');
  const parts = text.split(/^#{2,} /m).slice(1);
  const part = parts.find((each) => oneLine(each).includes(oneLine(words)));
  const [heading] = part?.split('\n') ?? [];
  return heading
    ?.toLowerCase()
    .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
    .replaceAll(' ', '-');
}
