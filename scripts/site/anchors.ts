/** The anchor that a forge makes of a heading; `text` has no marks of Markdown. */
export const headingAnchor = (text: string): string =>
  text
    .trim()
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
    .replaceAll(' ', '-');
