/** Which tests a file has, from its source: nothing is run. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';
import { repositoryRoot } from '../../../cdk/lib/function-names.ts';

interface TestFile {
  readonly titles: readonly Title[];
  /** Texts and numbers of the file: what a title of `it.each` may be filled with. */
  readonly values: ReadonlySet<string>;
}

/** The parts of a title between what is filled in. One part: nothing is. */
interface Title {
  readonly parts: readonly string[];
  /** As written, for a title of `it.each` that a reader means as a whole. */
  readonly written: string;
}

const files = new Map<string, TestFile | undefined>();

/**
 * Whether the file has a test with this title that is not skipped. A title that is filled in must be filled with texts
 * and numbers of the file, or with the name of a scenario.
 */
export function hasTest(file: string, name: string): boolean {
  if (!files.has(file)) files.set(file, readTestFile(file));
  const found = files.get(file);
  return found?.titles.some((title) => title.written === name || isFilled(title, name, found.values)) ?? false;
}

function readTestFile(file: string): TestFile | undefined {
  const path = join(repositoryRoot, file);
  if (!file.endsWith('.test.ts') || !existsSync(path)) return undefined;
  const source = ts.createSourceFile(file, readFileSync(path, 'utf8'), ts.ScriptTarget.Latest);
  const titles: Title[] = [];
  const values = new Set<string>(['true', 'false', 'undefined']);
  const visit = (node: ts.Node): void => {
    if (ts.isStringLiteralLike(node) || ts.isNumericLiteral(node)) values.add(node.text);
    if (ts.isCallExpression(node)) titles.push(...titleOf(node));
    ts.forEachChild(node, visit);
  };
  visit(source);
  return { titles, values };
}

function titleOf(call: ts.CallExpression): readonly Title[] {
  const [title, body] = call.arguments;
  if (title === undefined || body === undefined) return [];
  const words = wordsOf(call.expression);
  if (!['it', 'test'].includes(words[0] ?? '') || words.includes('skip') || words.includes('todo')) return [];
  if (ts.isStringLiteralLike(title)) {
    const isTemplate = words.includes('each') || words.includes('for');
    return [{ parts: isTemplate ? title.text.split(FILLED) : [title.text], written: title.text }];
  }
  if (ts.isTemplateExpression(title)) {
    const parts = [title.head.text, ...title.templateSpans.map(({ literal }) => literal.text)];
    return [{ parts, written: parts.join('…') }];
  }
  // A title that the code computes.
  return [{ parts: ['', ''], written: '' }];
}

/** What vitest fills in: https://vitest.dev/api/test#test-each */
const FILLED = /%[sdifjoOc]|\$[a-zA-Z_][\w.]*/;

/** `it.each(rows)` as `it`, `each`. */
function wordsOf(expression: ts.Expression): readonly string[] {
  if (ts.isIdentifier(expression)) return [expression.text];
  if (ts.isPropertyAccessExpression(expression)) return [...wordsOf(expression.expression), expression.name.text];
  if (ts.isCallExpression(expression)) return wordsOf(expression.expression);
  if (ts.isTaggedTemplateExpression(expression)) return wordsOf(expression.tag);
  return [];
}

function isFilled({ parts }: Title, name: string, values: ReadonlySet<string>): boolean {
  const escaped = parts.map((part) => part.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`));
  const filled = new RegExp(`^${escaped.join('(.+)')}$`, 's').exec(name)?.slice(1);
  return filled?.every((each) => values.has(each) || values.has(unquoted(each)) || isScenario(each)) ?? false;
}

/** `%j` fills in a text with its quotes. */
const unquoted = (text: string): string => /^"(.*)"$/s.exec(text)?.[1] ?? text;

const isScenario = (name: string): boolean =>
  /^[a-z-]+\.yaml$/.test(name) && existsSync(join(repositoryRoot, 'scenarios', name));
