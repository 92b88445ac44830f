// What the theme leaves out for those who read with a keyboard or a screen reader.
for (const one of document.querySelectorAll("p.caption[role=heading]")) one.setAttribute("aria-level", "2");
for (const one of document.querySelectorAll(".highlight pre, .table-wrapper"))
  if (one.scrollWidth > one.clientWidth) one.tabIndex = 0;
document.querySelector(".sidebar-drawer")?.setAttribute("aria-label", "All pages");
document.querySelector(".toc-drawer")?.setAttribute("aria-label", "On this page");
