// The fonts of the reader's system: pages without a download of 400 KB.
export { default } from 'vitepress/theme-without-fonts';
