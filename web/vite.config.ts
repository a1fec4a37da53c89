import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vite'

const at = (path: string) => fileURLToPath(new URL(path, import.meta.url))

/** Four pages with what they share. Addresses are relative, since each service has them under a path of its own. */
export default defineConfig({
  root: at('.'),
  base: './',
  logLevel: 'warn',
  build: {
    outDir: at('../dist/web'),
    emptyOutDir: true,
    target: 'es2022',
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    rollupOptions: { input: ['panel', 'console', 'chat', 'sign-in'].map((name) => at(`${name}.html`)) },
  },
})
