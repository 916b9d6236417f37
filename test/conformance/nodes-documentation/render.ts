/** The pages as Markdown. */
import type { Page, Statement } from './statement.ts';

export interface Counts {
  readonly shown: number;
  readonly differs: number;
  readonly notHere: number;
  readonly advice: number;
}

export const statementsOf = (pages: readonly Page[]): readonly Statement[] =>
  pages.flatMap(({ sections }) => sections.flatMap(({ statements }) => statements));

export function countsOf(pages: readonly Page[]): Counts {
  const counts = { shown: 0, differs: 0, notHere: 0, advice: 0 };
  for (const { outcome } of statementsOf(pages)) counts[outcome] += 1;
  return counts;
}

export const describeCounts = ({ shown, differs, notHere, advice }: Counts): string =>
  `${shown} shown, ${differs} different here, ${notHere} not here, ${advice} definitions and advice`;

/**
 * @param anchorOf where docs/deviations.md has these words: its anchor, or undefined
 * @returns a page beside those of docs/, which its links are relative to
 */
export function renderPages(pages: readonly Page[], anchorOf: (words: string) => string | undefined): string {
  const lines = [
    '# Nodes documentation, sentence by sentence',
    '',
    "What the pages of Kubernetes' documentation about nodes state, in our own words, and the test that shows it here.",
    'The pages were read on 2026-11-29. A test compares the names with the tests.',
    '',
    `In all: ${describeCounts(countsOf(pages))}.`,
  ];
  for (const page of pages) {
    lines.push('', `## ${page.title}`, '', `[The page](${page.url}): ${describeCounts(countsOf([page]))}.`);
    for (const { heading, statements } of page.sections) {
      lines.push('', `### ${heading}`, '', '| statement | here |', '| --- | --- |');
      for (const each of statements) lines.push(`| ${cell(each.says)} | ${cell(outcomeOf(each, anchorOf))} |`);
    }
  }
  return `${lines.join('\n')}\n`;
}

const cell = (text: string): string => text.replaceAll('|', String.raw`\|`).replaceAll('\n', ' ');

function outcomeOf(statement: Statement, anchorOf: (words: string) => string | undefined): string {
  const { outcome, reason, tests, deviation } = statement;
  const anchor = deviation === undefined ? undefined : anchorOf(deviation);
  const link = anchor === undefined ? '' : ` ([deviations](deviations.md#${anchor}))`;
  const words = {
    shown: '',
    differs: `Different: ${reason}${link}`,
    notHere: `Not here: ${reason}${link}`,
    advice: reason,
  };
  const byFile = Object.entries(Object.groupBy(tests, ({ file }) => file));
  const named = byFile.map(([file, all = []]) => `\`${file}\`: ${all.map(({ name }) => name).join('; ')}`).join('. ');
  return [words[outcome], named].filter((each) => each !== '').join(' ');
}
