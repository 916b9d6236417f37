import { ALLOWED_TEXTS } from './allowed-texts.ts';
import { proseOfMarkdown, proseOfTypeScript } from './prose.ts';
import { WORD_LIST } from './word-list.ts';

export interface Finding {
  readonly line: number;
  readonly found: string;
  readonly write: string;
}

export interface Examination {
  readonly findings: readonly Finding[];
  /** Lines that hold prose: a check that sees none has lost its input. */
  readonly linesExamined: number;
}

const escaped = (text: string): string => text.replace(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`);
const acrossLines = (pattern: string): string => pattern.replaceAll(' ', String.raw`\s+`);

const PATTERNS = WORD_LIST.map(({ pattern, write, isCaseSensitive }) => ({
  write,
  expression: new RegExp(acrossLines(pattern), isCaseSensitive === true ? 'g' : 'gi'),
}));
const ALLOWED = new RegExp(ALLOWED_TEXTS.map((text) => acrossLines(escaped(text))).join('|'), 'g');

/** What one file says that the word list replaces. `path` decides how prose is recognised. */
export function examine(path: string, source: string): Examination {
  const prose = (path.endsWith('.md') ? proseOfMarkdown(source) : proseOfTypeScript(source)).replace(ALLOWED, (text) =>
    text.replace(/\S/g, '·'),
  );
  const findings: Finding[] = [];
  for (const { expression, write } of PATTERNS) {
    for (const match of prose.matchAll(expression)) {
      const line = prose.slice(0, match.index).split('\n').length;
      findings.push({ line, found: match[0].replace(/\s+/g, ' '), write });
    }
  }
  return {
    findings: findings.sort((a, b) => a.line - b.line),
    linesExamined: prose.split('\n').filter((line) => /\p{L}/u.test(line)).length,
  };
}
