/**
 * Mutants of one file: small changes of behaviour. A test should detect each.
 *
 * Texts and types stay out where a change means nothing: imports, types, property names, sentences, messages of errors and
 * log lines.
 * Numbers above ten stay too: most of them tune a cost (a page, a cache), and a test of one repeats the constant.
 */
import ts from 'typescript';

export interface Mutant {
  readonly file: string;
  /** Offsets into the file's text: what is between them is replaced. */
  readonly start: number;
  readonly end: number;
  readonly replacement: string;
  readonly line: number;
  readonly mutator: string;
  /** The name of the function around it, as people look for it. */
  readonly within: string;
  /** Where the innermost function around it begins, -1 outside of all: what a reach probe reports. */
  readonly functionStart: number;
  /** `original → changed`, on one line: with `file` and `within` it identifies the mutant across edits elsewhere. */
  readonly change: string;
}

/** Numbers up to this are counts, indexes and bounds that decide; above it they tune. */
const SMALL_NUMBER_MAX = 10;

/** Characters of a change that are shown. */
const SHOWN_MAX = 100;

const OPERATORS: ReadonlyMap<ts.SyntaxKind, readonly string[]> = new Map([
  [ts.SyntaxKind.LessThanToken, ['<=', '>=']],
  [ts.SyntaxKind.LessThanEqualsToken, ['<', '>']],
  [ts.SyntaxKind.GreaterThanToken, ['>=', '<=']],
  [ts.SyntaxKind.GreaterThanEqualsToken, ['>', '<']],
  [ts.SyntaxKind.EqualsEqualsEqualsToken, ['!==']],
  [ts.SyntaxKind.ExclamationEqualsEqualsToken, ['===']],
  [ts.SyntaxKind.AmpersandAmpersandToken, ['||']],
  [ts.SyntaxKind.BarBarToken, ['&&']],
  [ts.SyntaxKind.PlusToken, ['-']],
  [ts.SyntaxKind.MinusToken, ['+']],
  [ts.SyntaxKind.AsteriskToken, ['/']],
  [ts.SyntaxKind.SlashToken, ['*']],
  [ts.SyntaxKind.PercentToken, ['*']],
  [ts.SyntaxKind.PlusEqualsToken, ['-=']],
  [ts.SyntaxKind.MinusEqualsToken, ['+=']],
]);
const SWAPPED: ReadonlyMap<string, string> = new Map([
  ['min', 'max'],
  ['max', 'min'],
  ['floor', 'ceil'],
  ['ceil', 'floor'],
  ['some', 'every'],
  ['every', 'some'],
]);
/** Calls without which the receiver stands for the result. */
const DROPPED = new Set(['filter', 'slice', 'sort', 'toSorted', 'reverse', 'toReversed', 'trim', 'toLowerCase']);
const SILENT_CALL = /(^|\.)(log|logger|meter|console)\.\w+$/;

export type FunctionNode = ts.FunctionLikeDeclaration & { readonly body: ts.ConciseBody };

export function isFunction(node: ts.Node): node is FunctionNode {
  return ts.isFunctionLike(node) && 'body' in node && node.body !== undefined;
}

export function parse(file: string, text: string): ts.SourceFile {
  return ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true);
}

const isText = (node: ts.Node): boolean =>
  ts.isStringLiteralLike(node) ||
  ts.isTemplateExpression(node) ||
  (ts.isBinaryExpression(node) && (isText(node.left) || isText(node.right)));

function nameOf(node: FunctionNode): string | undefined {
  if (node.name !== undefined) return node.name.getText();
  const { parent } = node;
  if (ts.isConstructorDeclaration(node)) return 'constructor';
  return ts.isVariableDeclaration(parent) || ts.isPropertyAssignment(parent) ? parent.name.getText() : undefined;
}

/** Replacements of one node, as [mutator, node that is replaced, text]. */
function* changesOf(node: ts.Node, text: string): Generator<[string, { start: number; end: number }, string]> {
  const span = (of: ts.Node) => ({ start: of.getStart(), end: of.end });
  const textOf = (of: ts.Node) => text.slice(of.getStart(), of.end);
  if (ts.isBinaryExpression(node)) {
    const { kind } = node.operatorToken;
    if (!(kind === ts.SyntaxKind.PlusToken || kind === ts.SyntaxKind.PlusEqualsToken) || !isText(node)) {
      for (const to of OPERATORS.get(kind) ?? []) yield ['operator', span(node.operatorToken), to];
    }
    if (kind === ts.SyntaxKind.AmpersandAmpersandToken || kind === ts.SyntaxKind.BarBarToken) {
      yield ['condition part removed', span(node), textOf(node.left)];
      yield ['condition part removed', span(node), textOf(node.right)];
    }
    if (kind === ts.SyntaxKind.QuestionQuestionToken) yield ['fallback removed', span(node), textOf(node.left)];
  }
  if (ts.isIfStatement(node) || ts.isConditionalExpression(node)) {
    const condition = ts.isIfStatement(node) ? node.expression : node.condition;
    yield ['condition', span(condition), 'true'];
    yield ['condition', span(condition), 'false'];
  }
  if (ts.isWhileStatement(node)) yield ['condition', span(node.expression), 'false'];
  if (ts.isPrefixUnaryExpression(node) && node.operator === ts.SyntaxKind.ExclamationToken) {
    yield ['negation removed', span(node), textOf(node.operand)];
  }
  if (node.kind === ts.SyntaxKind.TrueKeyword) yield ['boolean', span(node), 'false'];
  if (node.kind === ts.SyntaxKind.FalseKeyword) yield ['boolean', span(node), 'true'];
  if (ts.isNumericLiteral(node) && Number(node.text) <= SMALL_NUMBER_MAX) {
    yield ['number', span(node), String(Number(node.text) + 1)];
  }
  if (ts.isStringLiteral(node) && /^\S+$/.test(node.text)) yield ['text', span(node), "''"];
  if (ts.isArrayLiteralExpression(node) && node.elements.length > 0) yield ['array emptied', span(node), '[]'];
  if (ts.isSpreadAssignment(node)) yield ['spread removed', span(node), '...{}'];
  if (ts.isSpreadElement(node) && ts.isArrayLiteralExpression(node.parent))
    yield ['spread removed', span(node), '...[]'];
  if (ts.isCallExpression(node) && ts.isPropertyAccessExpression(node.expression)) {
    const { name, expression } = node.expression;
    const to = SWAPPED.get(name.text);
    if (to !== undefined) yield ['call swapped', span(name), to];
    if (DROPPED.has(name.text) && !node.expression.questionDotToken) {
      yield ['call removed', span(node), textOf(expression)];
    }
  }
  if (ts.isAwaitExpression(node)) yield ['await removed', span(node), `(${textOf(node.expression)})`];
  if (
    ts.isExpressionStatement(node) ||
    ts.isThrowStatement(node) ||
    ts.isBreakStatement(node) ||
    ts.isContinueStatement(node)
  ) {
    yield ['statement removed', span(node), ';'];
  }
  if (ts.isReturnStatement(node) && node.expression === undefined) yield ['statement removed', span(node), ';'];
}

/** What no test has to see: types, imports, keys, and the words of errors, log lines and metrics. */
function isOutOfSight(node: ts.Node): boolean {
  if (ts.isTypeNode(node) || ts.isImportDeclaration(node) || ts.isExportDeclaration(node)) return true;
  if (ts.isInterfaceDeclaration(node) || ts.isTypeAliasDeclaration(node)) return true;
  const { parent } = node;
  if (ts.isCallExpression(node) && SILENT_CALL.test(node.expression.getText())) return true;
  if (ts.isExpressionStatement(node) && ts.isStringLiteral(node.expression)) return true;
  if (!isText(node) && !ts.isArrayLiteralExpression(node)) return false;
  if (ts.isNewExpression(parent) && /(Error|Fault)$/.test(parent.expression.getText())) return true;
  if (ts.isElementAccessExpression(parent)) return parent.argumentExpression === node;
  return ts.isPropertyAssignment(parent) && parent.name === node;
}

/** A log line or a metric, as a statement or awaited. */
function isSilent(node: ts.Node): boolean {
  const inner = ts.isExpressionStatement(node) || ts.isAwaitExpression(node) ? node.expression : node;
  return inner === node ? isOutOfSight(node) : isSilent(inner);
}

function oneLine(text: string): string {
  const line = text.replaceAll(/\s+/g, ' ');
  return line.length > SHOWN_MAX ? `${line.slice(0, SHOWN_MAX)}…` : line;
}

export function mutantsOf(file: string, text: string): Mutant[] {
  const source = parse(file, text);
  const found: Mutant[] = [];
  const visit = (node: ts.Node, names: readonly string[], functionStart: number): void => {
    if (isOutOfSight(node)) return;
    const inside = isFunction(node);
    const name = inside ? nameOf(node) : undefined;
    const around = name === undefined ? names : [...names, name];
    const from = inside ? node.getStart() : functionStart;
    for (const [mutator, { start, end }, replacement] of changesOf(node, text)) {
      if (isSilent(node)) continue;
      const shown = mutator === 'operator' ? { start: node.getStart(), end: node.end } : { start, end };
      const changed = text.slice(shown.start, start) + replacement + text.slice(end, shown.end);
      found.push({
        file,
        start,
        end,
        replacement,
        line: source.getLineAndCharacterOfPosition(start).line + 1,
        mutator,
        within: around.join('.'),
        functionStart: from,
        change: `${oneLine(text.slice(shown.start, shown.end))} → ${oneLine(changed)}`,
      });
    }
    ts.forEachChild(node, (child) => visit(child, around, from));
  };
  visit(source, [], -1);
  return found;
}

export function apply(text: string, { start, end, replacement }: Mutant): string {
  return text.slice(0, start) + replacement + text.slice(end);
}
