/**
 * npm run wording
 *
 * Looks in comments, string literals and Markdown for the words that the word list replaces, and for comments that are
 * too long for a line. Exit code 1 if there is one.
 */
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';
import { ALLOWED_TEXTS, WORD_LIST } from './word-list.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const FILES = ['*.{ts,md}', '!(.*|node_modules|cdk.out|dist)/**/*.{ts,md}'];
/** Decisions are history; the word list and its tests hold the words on purpose. */
const SKIPPED = /^(docs\/decisions|scripts\/wording)\/|(^|\/)(\.[^/]*|node_modules|cdk\.out|dist)\//;
/** Stands where code stood: neither a letter nor white space, so no pattern matches across it. */
const FILLER = '·';

const fill = (text: string): string => text.replace(/\S/g, FILLER);
const withoutInlineCode = (text: string): string => text.replace(/`[^`\n]*`/g, fill);
const escaped = (text: string): string => text.replace(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`);
const acrossLines = (pattern: string): string => pattern.replaceAll(' ', String.raw`\s+`);

const PATTERNS = WORD_LIST.map(({ pattern, write, isCaseSensitive }) => ({
  write,
  expression: new RegExp(acrossLines(pattern), isCaseSensitive === true ? 'g' : 'gi'),
}));
const ALLOWED = new RegExp(ALLOWED_TEXTS.map((text) => acrossLines(escaped(text))).join('|'), 'g');

/** The prose of a Markdown file: all but fenced blocks, inline code, addresses of links and HTML comments. */
function proseOfMarkdown(source: string): string {
  return withoutInlineCode(source.replace(/^(```|~~~)[\s\S]*?^\1|<!--[\s\S]*?-->|\]\([^)\s]*\)/gm, fill));
}

/** A comment with its marks as spaces: a sentence over several lines reads as one. */
function proseOfComment(comment: string): string {
  const body = comment.replace(/^([ \t]*)(\/\*+|\*+\/|\*|\/\/+)/gm, (marks) => ' '.repeat(marks.length));
  return withoutInlineCode(body).replace(/\*\/$/, '  ');
}

/** A literal with a space in it is a sentence; one without is a key, a path or a name of code. */
function proseOfLiteral(literal: string): string {
  const text = literal.replace(/^['"`}]|\$\{$|['"`]$/g, fill);
  return /\S\s+\S/.test(text) ? withoutInlineCode(text) : fill(text);
}

const COMMENTS = new Set([ts.SyntaxKind.SingleLineCommentTrivia, ts.SyntaxKind.MultiLineCommentTrivia]);
/** After these and after a literal a slash divides; after all others it opens a regular expression. */
const ENDS_OF_EXPRESSIONS = new Set([
  ts.SyntaxKind.Identifier,
  ts.SyntaxKind.CloseParenToken,
  ts.SyntaxKind.CloseBracketToken,
  ts.SyntaxKind.CloseBraceToken,
  ts.SyntaxKind.ThisKeyword,
  ts.SyntaxKind.ExclamationToken,
]);

const isLiteral = (kind: ts.SyntaxKind): boolean =>
  kind >= ts.SyntaxKind.FirstLiteralToken && kind <= ts.SyntaxKind.LastTemplateToken;
const isTrivia = (kind: ts.SyntaxKind): boolean =>
  kind >= ts.SyntaxKind.FirstTriviaToken && kind <= ts.SyntaxKind.LastTriviaToken;

/** The prose of a TypeScript file: comments and string literals. A filler replaces the rest; lines stay. */
function proseOfTypeScript(source: string): string {
  const scanner = ts.createScanner(ts.ScriptTarget.Latest, false, ts.LanguageVariant.Standard, source);
  const pieces: string[] = [];
  /** For each open brace, whether it opened a `${` of a template. */
  const braces: boolean[] = [];
  let previous = ts.SyntaxKind.Unknown;
  for (let kind = scanner.scan(); kind !== ts.SyntaxKind.EndOfFileToken; kind = scanner.scan()) {
    if (kind === ts.SyntaxKind.SlashToken && !isLiteral(previous) && !ENDS_OF_EXPRESSIONS.has(previous)) {
      kind = scanner.reScanSlashToken();
    }
    if (kind === ts.SyntaxKind.OpenBraceToken) braces.push(false);
    if (kind === ts.SyntaxKind.CloseBraceToken && braces.pop() === true) kind = scanner.reScanTemplateToken(false);
    if (kind === ts.SyntaxKind.TemplateHead || kind === ts.SyntaxKind.TemplateMiddle) braces.push(true);
    const text = scanner.getTokenText();
    if (COMMENTS.has(kind)) pieces.push(proseOfComment(text));
    else if (isLiteral(kind) && kind !== ts.SyntaxKind.RegularExpressionLiteral) pieces.push(proseOfLiteral(text));
    else pieces.push(fill(text));
    if (!isTrivia(kind)) previous = kind;
  }
  return pieces.join('');
}

/** The formatter divides code, and leaves comments as they are. */
const COMMENT_COLUMNS_MAX = 120;

const longComments = (source: string): Finding[] =>
  source
    .split('\n')
    .flatMap((text, index) =>
      text.length > COMMENT_COLUMNS_MAX && /^\s*(\*|\/\/|\/\*)/.test(text)
        ? [{ line: index + 1, found: `a comment of ${text.length} columns`, write: `${COMMENT_COLUMNS_MAX} at most` }]
        : [],
    );

interface Finding {
  readonly line: number;
  readonly found: string;
  readonly write: string;
}

export interface Examination {
  readonly findings: readonly Finding[];
  /** Lines that hold prose: a check that sees none has lost its input. */
  readonly linesExamined: number;
}

/** What one file says that the word list replaces. `path` decides how prose is recognised. */
export function examine(path: string, source: string): Examination {
  const prose = (path.endsWith('.md') ? proseOfMarkdown(source) : proseOfTypeScript(source)).replace(ALLOWED, fill);
  const findings: Finding[] = PATTERNS.flatMap(({ expression, write }) =>
    [...prose.matchAll(expression)].map((match) => ({
      line: prose.slice(0, match.index).split('\n').length,
      found: match[0].replace(/\s+/g, ' '),
      write,
    })),
  );
  if (!path.endsWith('.md')) findings.push(...longComments(source));
  return {
    findings: findings.sort((a, b) => a.line - b.line),
    linesExamined: prose.split('\n').filter((line) => /\p{L}/u.test(line)).length,
  };
}

function main(): number {
  const paths = globSync(FILES, { cwd: ROOT }).filter((path) => !SKIPPED.test(path));
  let lines = 0;
  let total = 0;
  for (const path of paths.sort()) {
    const { findings, linesExamined } = examine(path, readFileSync(join(ROOT, path), 'utf8'));
    for (const { line, found, write } of findings) console.error(`${path}:${line}: "${found}"; write: ${write}`);
    lines += linesExamined;
    total += findings.length;
  }
  console.log(`wording: ${lines} lines of prose in ${paths.length} files, ${total} findings`);
  return total === 0 ? 0 : 1;
}

if (import.meta.main) process.exitCode = main();
