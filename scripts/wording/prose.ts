import ts from 'typescript';

/** Stands where code stood: neither a letter nor white space, so no pattern matches across it. */
const FILLER = '·';

const fill = (text: string): string => text.replace(/\S/g, FILLER);
const withoutInlineCode = (text: string): string => text.replace(/`[^`\n]*`/g, fill);

/** A comment with its marks as spaces, so that a sentence over several lines reads as one. */
function commentProse(comment: string): string {
  const body = comment.replace(/^([ \t]*)(\/\*+|\*+\/|\*|\/\/+)/gm, (marks) => ' '.repeat(marks.length));
  return withoutInlineCode(body).replace(/\*\/$/, '  ');
}

/** A literal with a space in it is a sentence; one without is a key, a path or a name of code. */
const literalProse = (literal: string): string =>
  /\S\s+\S/.test(literal) ? withoutInlineCode(literal) : fill(literal);

/**
 * The prose of a TypeScript file: its comments and its string literals.
 *
 * The result is as long as the source and has the same lines; whatever is not prose is replaced by a filler character.
 */
export function proseOfTypeScript(source: string): string {
  const scanner = ts.createScanner(ts.ScriptTarget.Latest, false, ts.LanguageVariant.Standard, source);
  const pieces: string[] = [];
  /** For each open brace, whether it opened a `${` of a template. */
  const braces: boolean[] = [];
  let previous = ts.SyntaxKind.Unknown;
  for (let kind = scanner.scan(); kind !== ts.SyntaxKind.EndOfFileToken; kind = scanner.scan()) {
    if (kind === ts.SyntaxKind.SlashToken && !endsAnExpression(previous)) kind = scanner.reScanSlashToken();
    if (kind === ts.SyntaxKind.OpenBraceToken) braces.push(false);
    if (kind === ts.SyntaxKind.CloseBraceToken && braces.pop() === true) kind = scanner.reScanTemplateToken(false);
    if (kind === ts.SyntaxKind.TemplateHead || kind === ts.SyntaxKind.TemplateMiddle) braces.push(true);
    pieces.push(proseOfToken(kind, scanner.getTokenText()));
    if (!isTrivia(kind)) previous = kind;
  }
  return pieces.join('');
}

function proseOfToken(kind: ts.SyntaxKind, text: string): string {
  switch (kind) {
    case ts.SyntaxKind.SingleLineCommentTrivia:
    case ts.SyntaxKind.MultiLineCommentTrivia:
      return commentProse(text);
    case ts.SyntaxKind.StringLiteral:
    case ts.SyntaxKind.NoSubstitutionTemplateLiteral:
    case ts.SyntaxKind.TemplateHead:
    case ts.SyntaxKind.TemplateMiddle:
    case ts.SyntaxKind.TemplateTail:
      return literalProse(text.replace(/^['"`}]|\$\{$|['"`]$/g, fill));
    default:
      return fill(text);
  }
}

function isTrivia(kind: ts.SyntaxKind): boolean {
  return kind >= ts.SyntaxKind.FirstTriviaToken && kind <= ts.SyntaxKind.LastTriviaToken;
}

/** After these a slash divides; after all others it opens a regular expression. */
function endsAnExpression(kind: ts.SyntaxKind): boolean {
  return (
    kind === ts.SyntaxKind.Identifier ||
    kind === ts.SyntaxKind.CloseParenToken ||
    kind === ts.SyntaxKind.CloseBracketToken ||
    kind === ts.SyntaxKind.CloseBraceToken ||
    kind === ts.SyntaxKind.ThisKeyword ||
    kind === ts.SyntaxKind.ExclamationToken ||
    (kind >= ts.SyntaxKind.FirstLiteralToken && kind <= ts.SyntaxKind.LastTemplateToken)
  );
}

/** The prose of a Markdown file: all but fenced blocks, inline code, addresses of links and HTML comments. */
export function proseOfMarkdown(source: string): string {
  const text = source
    .replace(/^(```|~~~)[\s\S]*?^\1/gm, fill)
    .replace(/<!--[\s\S]*?-->/g, fill)
    .replace(/\]\([^)\s]*\)/g, fill);
  return withoutInlineCode(text);
}
