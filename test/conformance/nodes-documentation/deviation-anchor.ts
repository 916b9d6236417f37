import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { repositoryRoot } from '../../../cdk/lib/function-names.ts';
import { headingAnchor } from '../../../scripts/site/anchors.ts';

const oneLine = (text: string): string => text.replaceAll(/\s+/g, ' ');

/** The anchor of the heading under which docs/deviations.md has these words, however its lines are broken. */
export function deviationAnchor(words: string): string | undefined {
  const text = readFileSync(join(repositoryRoot, 'docs/deviations.md'), 'utf8');
  const parts = text.split(/^#{2,} /m).slice(1);
  const part = parts.find((each) => oneLine(each).includes(oneLine(words)));
  return part === undefined ? undefined : headingAnchor(part.split('\n', 1)[0]!);
}
